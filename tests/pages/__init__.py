"""The snippets of README and of the how-to pages, played as a reader would paste them."""
