"""Results for people: tables, pages, model cards, stored episodes."""
