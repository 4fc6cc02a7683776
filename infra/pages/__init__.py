"""Pages: self-contained HTML, drawings, wording of numbers."""
