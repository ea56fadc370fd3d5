"""Examples of docstrings as the documentation site shows them; mkdocs.yml names this file."""

import griffe


class Examples(griffe.Extension):
    """``Example:`` becomes the section that Griffe knows, in which ``>>>`` is code."""

    def on_object(self, *, obj: griffe.Object, **kwargs) -> None:
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
