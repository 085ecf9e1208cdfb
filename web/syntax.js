// The newest syntax that the page's modules use. A browser that cannot parse this file cannot parse them, and oldest.js
// says so. It is a script of its own, since the page's policy forbids `eval`.

document.documentElement.setAttribute("data-syntax", null?.older ?? "today");
