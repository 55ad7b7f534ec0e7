/* The table of contents knows where the reader is; on a narrow screen it starts folded. */
(() => {
  const links = new Map([...document.querySelectorAll(".contents a")].map(link => [link.hash.slice(1), link]));
  if (matchMedia("(max-width: 62rem)").matches) document.querySelector(".contents details").open = false;
  const chapters = [...links.keys()].map(name => document.getElementById(name));
  let waiting = false;
  const mark = () => {
    waiting = false;
    const current = chapters.findLast(chapter => chapter.getBoundingClientRect().top < innerHeight / 3) ?? chapters[0];
    for (const [name, link] of links) {
      if (name === current?.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(mark); } }, { passive: true });
  addEventListener("beforeprint", () => { for (const fold of document.querySelectorAll("details")) fold.open = true; });
  mark();
})();
