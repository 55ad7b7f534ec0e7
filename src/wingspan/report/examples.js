/* Examples: filters by kind and label, five at a time. */
(() => {
  const STEP = 5;
  for (const block of document.querySelectorAll(".examples")) {
    const items = [...block.querySelectorAll("article")];
    const facets = [["kinds", "Kind"], ["labels", "Label"]].map(([key, title]) => {
      const counts = new Map();
      for (const item of items) for (const name of new Set(JSON.parse(item.dataset[key]))) counts.set(name, (counts.get(name) ?? 0) + 1);
      return { key, title, counts };
    }).filter(facet => facet.counts.size > 1);
    const bar = document.createElement("div"), chosen = {}, status = document.createElement("span"), more = document.createElement("button");
    bar.className = "filters";
    status.setAttribute("role", "status");
    more.type = "button";
    more.textContent = "Show more";
    let limit = STEP;
    const update = () => {
      let hits = 0;
      for (const item of items) {
        const hit = Object.entries(chosen).every(([key, name]) => !name || JSON.parse(item.dataset[key]).includes(name));
        item.hidden = !hit || hits >= limit;
        hits += hit;
      }
      more.hidden = hits <= limit;
      status.textContent = `${Math.min(hits, limit)} of ${hits}`;
    };
    for (const { key, title, counts } of facets) {
      const label = document.createElement("label"), select = document.createElement("select");
      label.append(title, select);
      select.append(new Option("all", ""));
      for (const [name, count] of [...counts].sort((a, b) => b[1] - a[1])) select.append(new Option(`${name} (${count})`, name));
      select.addEventListener("change", () => { chosen[key] = select.value; limit = STEP; update(); });
      bar.append(label);
    }
    bar.append(status);
    more.addEventListener("click", () => { limit += STEP; update(); });
    block.querySelector("header").after(bar);
    (items.at(-1) ?? bar).after(more);
    update();
    addEventListener("beforeprint", () => { limit = Infinity; update(); });
    addEventListener("afterprint", () => { limit = STEP; update(); });
  }
})();
