// Keeps the page up to date. Without it the page is as it was when it was loaded.
"use strict";
(function () {
  const main = document.querySelector("main[data-live]");
  if (!main || !window.EventSource) return;
  const said = document.getElementById("said");
  const at = document.querySelector("#at span");
  const stream = new EventSource("/live" + location.search);
  stream.addEventListener("section", function (e) {
    const d = JSON.parse(e.data);
    const section = document.getElementById(d.id);
    if (!section) return location.reload();
    const body = section.querySelector(".body");
    // Whoever is about to press something keeps it under their finger.
    const held = body.contains(document.activeElement) && document.activeElement.dataset.key;
    const scrolled = Array.from(body.querySelectorAll(".table"), function (t) { return t.scrollLeft; });
    body.innerHTML = d.html; // made by our own templates, which escape what people wrote
    body.querySelectorAll(".table").forEach(function (t, i) { t.scrollLeft = scrolled[i] || 0; });
    if (held) {
      const again = Array.from(body.querySelectorAll("[data-key]")).find(function (b) { return b.dataset.key === held; });
      if (again) again.focus({ preventScroll: true });
    }
  });
  stream.addEventListener("at", function (e) { at.textContent = JSON.parse(e.data).at; said.textContent = ""; });
  stream.onerror = function () { said.textContent = "The page is not being brought up to date at the moment."; };
})();
