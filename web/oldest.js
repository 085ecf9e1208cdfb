// Shows what a browser lacks that is too old for this page, whose modules do not even parse there. It must run in any
// browser, so it is not a module, and only uses old syntax.

(function () {
  var lacks = [];
  if (!("noModule" in document.createElement("script"))) lacks.push("JavaScript modules");
  if (document.documentElement.getAttribute("data-syntax") !== "today") lacks.push("optional chaining");
  if (typeof WebAssembly !== "object") lacks.push("WebAssembly");
  if (lacks.length === 0) return;
  var notice = document.getElementById("notice");
  notice.textContent =
    "This browser is too old for this page: it lacks " + lacks.join(", ") + ". Use Chromium 80, Firefox 79, Safari 15 or later.";
  notice.hidden = false;
})();
