// Keeps the page up to date. Without it the page is as it was when it was loaded.
"use strict";
(function () {
  const main = document.querySelector("main[data-live]");
  if (!main || !window.EventSource) return;
  const said = document.getElementById("said");
  const at = document.querySelector("#at span");
  let points = false; // with something that hovers before it clicks
  const longest = 15000; // ms that a section is left as it is for somebody's sake
  const late = new Map(); // section → what it is to hold, and since when it waits
  const stream = new EventSource("/live" + location.search);

  ["pointermove", "pointerdown"].forEach(function (kind) {
    addEventListener(kind, function (e) { points = e.pointerType === "mouse"; }, { passive: true });
  });

  // What is about to be clicked does not move away, and what is marked stays marked.
  function held(body) {
    const marked = getSelection();
    return (points && body.querySelector("a:hover, button:hover")) || (!marked.isCollapsed && body.contains(marked.anchorNode));
  }

  // Two parts of the page are alike when they differ in words and numbers only. Then these
  // are changed where they are, so that nobody who reads or listens loses their place.
  function alike(a, b) {
    if (a.nodeName !== b.nodeName || a.childNodes.length !== b.childNodes.length) return false;
    if (a.dataset && (a.dataset.key !== b.dataset.key || a.className !== b.className && a.nodeName === "BUTTON")) return false;
    return Array.prototype.every.call(a.childNodes, function (c, i) { return alike(c, b.childNodes[i]); });
  }

  function change(a, b) {
    if (a.nodeType !== Node.ELEMENT_NODE) {
      if (a.nodeValue !== b.nodeValue) a.nodeValue = b.nodeValue;
      return;
    }
    Array.from(a.attributes).forEach(function (x) { if (!b.hasAttribute(x.name)) a.removeAttribute(x.name); });
    Array.from(b.attributes).forEach(function (x) { if (a.getAttribute(x.name) !== x.value) a.setAttribute(x.name, x.value); });
    a.childNodes.forEach(function (c, i) { change(c, b.childNodes[i]); });
  }

  function replace(section, body, fresh) {
    const focus = document.activeElement, inside = body.contains(focus);
    const key = inside && focus.dataset.key;
    const scrolled = Array.from(body.querySelectorAll(".table, .text"), function (t) { return [t.scrollLeft, t.scrollTop]; });
    body.replaceWith(fresh);
    fresh.querySelectorAll(".table, .text").forEach(function (t, i) {
      if (scrolled[i]) [t.scrollLeft, t.scrollTop] = scrolled[i];
    });
    if (!inside) return;
    const again = key && Array.from(fresh.querySelectorAll("[data-key]")).find(function (b) { return b.dataset.key === key; });
    (again || section).focus({ preventScroll: true }); // whose button is gone goes on in the same section
  }

  function catchUp() {
    late.forEach(function (d, section) {
      const body = section.querySelector(".body");
      const fresh = body.cloneNode(false);
      fresh.innerHTML = d.html; // made by our own templates, which escape what people wrote
      if (alike(body, fresh)) {
        change(body, fresh);
      } else if (held(section) && Date.now() - d.since < longest) {
        return;
      } else {
        replace(section, body, fresh);
      }
      late.delete(section);
    });
  }

  function say(words) {
    if (said.textContent !== words) said.textContent = words; // the same is not read out twice
  }

  stream.addEventListener("section", function (e) {
    const d = JSON.parse(e.data);
    const section = document.getElementById(d.id);
    if (!section) return location.reload();
    const waits = late.get(section);
    late.set(section, { html: d.html, since: waits ? waits.since : Date.now() });
    catchUp();
  });
  stream.addEventListener("at", function (e) {
    at.textContent = JSON.parse(e.data).at;
    say("");
    catchUp();
  });
  stream.onerror = function () {
    say(stream.readyState === EventSource.CLOSED ?
      "The page is not brought up to date any more. Reload it to see what is new." :
      "The page is not being brought up to date at the moment.");
  };
})();
