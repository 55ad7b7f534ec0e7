/* Clouds of points on a canvas: zoom with the buttons, the keys + - 0 and arrows, a pinch, or ctrl and the wheel; drag to
   move; pointing at a point shows its words; the names below switch groups off and on. */
(() => {
  const button = (text, label, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.append(text);
    if (label) made.setAttribute("aria-label", label);
    made.addEventListener("click", act);
    return made;
  };
  const cloud = block => {
    const data = JSON.parse(block.querySelector("script[type='application/json']").textContent);
    const canvas = block.querySelector("canvas"), tip = block.querySelector(".tip"), pen = canvas.getContext("2d");
    const off = new Set(), pad = 28;
    const range = values => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
    const [left, right] = range(data.x), [bottom, top] = range(data.y);
    const home = () => ({ x: (left + right) / 2, y: (bottom + top) / 2, zoom: 1 });
    let view = home(), hit = -1;
    const size = () => ({ w: canvas.clientWidth, h: canvas.clientHeight });
    const scale = () => {
      const { w, h } = size();
      return { x: (w - 2 * pad) / (right - left || 1) * view.zoom, y: (h - 2 * pad) / (top - bottom || 1) * view.zoom };
    };
    const place = n => {
      const { w, h } = size(), s = scale();
      return [w / 2 + (data.x[n] - view.x) * s.x, h / 2 - (data.y[n] - view.y) * s.y];
    };
    const draw = () => {
      const { w, h } = size(), ratio = devicePixelRatio || 1, ink = getComputedStyle(document.body);
      canvas.width = w * ratio;
      canvas.height = h * ratio;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.lineWidth = 1.6;
      // the labels' colors are made for text on white; on a dark page points are drawn somewhat lighter
      const colors = ink.colorScheme === "dark" ? data.colors.map(color => `color-mix(in srgb, ${color}, white 30%)`) : data.colors;
      const radius = Math.max(1.6, Math.min(4.5, 90 / Math.sqrt(data.x.length)) * Math.min(2, view.zoom ** 0.4));
      for (let n = 0; n < data.x.length; n++) {
        if (off.has(data.group[n])) continue;
        const [x, y] = place(n);
        if (x < -5 || y < -5 || x > w + 5 || y > h + 5) continue;
        pen.fillStyle = pen.strokeStyle = colors[data.group[n]];
        pen.globalAlpha = n === hit ? 1 : 0.72;
        pen.beginPath();
        if (data.right && !data.right[n]) {
          pen.moveTo(x - radius - 1, y - radius - 1); pen.lineTo(x + radius + 1, y + radius + 1);
          pen.moveTo(x - radius - 1, y + radius + 1); pen.lineTo(x + radius + 1, y - radius - 1);
          pen.stroke();
        } else {
          pen.arc(x, y, n === hit ? radius + 2 : radius, 0, 7);
          pen.fill();
        }
      }
      pen.globalAlpha = 1;
      pen.fillStyle = ink.getPropertyValue("--soft");
      pen.font = "12px system-ui, sans-serif";
      if (data.x.length <= 30) for (let n = 0; n < data.x.length; n++) {  // few enough to be named
        const [x, y] = place(n);
        pen.textAlign = x > w / 2 ? "right" : "left";
        if (!off.has(data.group[n])) pen.fillText(data.words[n], x + (x > w / 2 ? -9 : 9), y + 4);
      }
      pen.textAlign = "right";
      pen.fillText(data.axes[0], w - 6, h - 6);
      pen.textAlign = "left";
      pen.fillText(data.axes[1], 6, 14);
    };
    const point = (x, y) => {
      let best = 144;
      hit = -1;
      for (let n = 0; n < data.x.length; n++) {
        if (off.has(data.group[n])) continue;
        const [px, py] = place(n), distance = (px - x) ** 2 + (py - y) ** 2;
        if (distance < best) { best = distance; hit = n; }
      }
      tip.hidden = hit < 0;
      if (hit >= 0) {
        const [px, py] = place(hit), { w } = size();
        const name = data.names[data.group[hit]];
        tip.textContent = data.words[hit] === name ? name : `${data.words[hit]} · ${name}`;
        tip.style.left = tip.style.right = "auto";
        tip.style[px < w / 2 ? "left" : "right"] = `${(px < w / 2 ? px : w - px) + 10}px`;
        tip.style.top = `${Math.max(0, py - 14)}px`;
      }
      draw();
    };
    const zoom = (factor, x = size().w / 2, y = size().h / 2) => {
      const { w, h } = size(), s = scale(), next = Math.max(1, Math.min(60, view.zoom * factor)), change = next / view.zoom;
      const ax = view.x + (x - w / 2) / s.x, ay = view.y - (y - h / 2) / s.y;
      view = { x: ax - (ax - view.x) / change, y: ay - (ay - view.y) / change, zoom: next };
      if (next === 1) view = home();
      tip.hidden = true;
      canvas.dataset.zoom = view.zoom.toFixed(2);
      draw();
    };
    const move = (dx, dy) => { const s = scale(); view.x -= dx / s.x; view.y += dy / s.y; tip.hidden = true; draw(); };
    const fingers = new Map();
    canvas.addEventListener("pointerdown", event => { fingers.set(event.pointerId, event); canvas.setPointerCapture(event.pointerId); });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, event => fingers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; hit = -1; draw(); });
    canvas.addEventListener("pointermove", event => {
      const box = canvas.getBoundingClientRect(), before = fingers.get(event.pointerId);
      if (!before) return point(event.clientX - box.left, event.clientY - box.top);
      if (fingers.size === 2) {
        const other = [...fingers.values()].find(finger => finger.pointerId !== event.pointerId);
        const apart = finger => Math.hypot(finger.clientX - other.clientX, finger.clientY - other.clientY) || 1;
        zoom(apart(event) / apart(before), other.clientX - box.left, other.clientY - box.top);
      } else if (view.zoom > 1) move(event.clientX - before.clientX, event.clientY - before.clientY);
      fingers.set(event.pointerId, event);
    });
    canvas.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      zoom(event.deltaY < 0 ? 1.25 : 0.8, event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    canvas.addEventListener("keydown", event => {
      const steps = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
      if (event.key === "+" || event.key === "=") zoom(1.5);
      else if (event.key === "-") zoom(1 / 1.5);
      else if (event.key === "0") zoom(0);
      else if (steps[event.key] && view.zoom > 1) { event.preventDefault(); move(...steps[event.key]); }
    });
    const keys = document.createElement("div");
    keys.className = "keys";
    keys.append(button("+", "Zoom in", () => zoom(1.5)), button("−", "Zoom out", () => zoom(1 / 1.5)), button("Whole", "Show all points", () => zoom(0)));
    data.names.forEach((name, n) => {
      const dot = document.createElement("span");
      dot.className = "dot";
      dot.style.background = data.colors[n];
      const key = button(dot, "", () => {
        off.has(n) ? off.delete(n) : off.add(n);
        key.setAttribute("aria-pressed", String(!off.has(n)));
        draw();
      });
      key.append(name);
      key.setAttribute("aria-pressed", "true");
      keys.append(key);
    });
    if (data.right) keys.append("× wrong");
    block.querySelector(".cloud").before(keys);
    new ResizeObserver(draw).observe(canvas);
    document.addEventListener("themechange", draw);
  };
  for (const canvas of document.querySelectorAll(".cloud canvas")) cloud(canvas.closest(".block"));
})();
