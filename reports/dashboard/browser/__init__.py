"""Scripts and styles of the dashboard, each file named for its idea; `document` puts them into the page."""
