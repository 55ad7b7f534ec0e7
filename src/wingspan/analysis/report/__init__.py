"""The report: what was measured as sections of blocks, and the page that shows them. Blocks know no HTML."""
