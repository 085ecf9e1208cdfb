// The youngest syntax of the page's modules: where this does not even parse, neither do they, and oldest.js says so. A
// script of its own, since the page's policy lets no script be made of a text.

document.documentElement.setAttribute("data-syntax", null?.older ?? "today");
