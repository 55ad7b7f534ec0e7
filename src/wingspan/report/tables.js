/* Tables: long ones are folded, a click on a heading sorts, a button saves what is on the page as CSV. */
(() => {
  const value = cell => cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent;
  const order = (a, b, sign) => typeof a !== typeof b ? (typeof a === "number" ? -1 : 1)  // what is missing comes last
    : sign * (typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true }));
  const SHOWN = 15;
  for (const table of document.querySelectorAll(".tabular table")) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    let folded = body.rows.length > SHOWN + 5;
    const fold = () => [...body.rows].forEach((row, at) => { row.hidden = folded && at >= SHOWN; });
    if (folded) {
      const more = document.createElement("button");
      more.type = "button";
      more.textContent = `Show all ${body.rows.length} rows`;
      const open = () => { folded = false; fold(); more.remove(); };
      more.addEventListener("click", open);
      addEventListener("beforeprint", open);
      table.parentElement.after(more);
      fold();
    }
    if (body.rows.length > 1) heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const numbers = head.classList.contains("number");
        const down = head.getAttribute("aria-sort") === (numbers ? "descending" : "ascending") ? !numbers : numbers;
        const rows = [...body.rows].map(row => [value(row.cells[column]), row]);
        rows.sort((a, b) => order(a[0], b[0], down ? -1 : 1));
        body.append(...rows.map(row => row[1]));
        fold();
        heads.forEach(other => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
      });
    });
  }
  const quoted = text => /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const line = row => [...row.cells].map(cell => quoted(cell.dataset.v ?? cell.textContent)).join(",");
  for (const button of document.querySelectorAll("button.csv")) {
    button.hidden = false;
    button.setAttribute("aria-label", `Save ${button.dataset.name} as CSV`);
    button.addEventListener("click", () => {
      const rows = [...button.closest(".tabular").querySelector("table").rows];
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob(["\ufeff", rows.map(line).join("\r\n"), "\r\n"], { type: "text/csv" }));
      link.download = `${button.dataset.name}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
})();
