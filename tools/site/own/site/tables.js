// A wide table scrolls inside the page on a phone; whoever has no pointer scrolls it by keyboard, which needs the focus.
const focusable = () =>
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((wrap) => { wrap.tabIndex = 0; });
new MutationObserver(focusable).observe(document.body, { childList: true, subtree: true });
focusable();
