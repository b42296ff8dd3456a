"""Makes the pages of the site that no one writes by hand, when Sphinx starts."""
