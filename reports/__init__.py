"""Result rows, their store, tables, pages and gates."""
