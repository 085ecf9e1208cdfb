// Says what a browser lacks that is too old for this page: its modules do not even parse there. For any browser, so neither a
// module nor in the language of today.

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
