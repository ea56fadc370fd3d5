"""Pages of the site whose source is elsewhere in the repository; mkdocs.yml names this file."""

import pathlib
import re

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).parent.parent
PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    # Model cards of the operators that come with the package.
    **{
        f"operators/{card.parent.name}.md": str(card.relative_to(ROOT))
        for card in sorted((ROOT / "sino_jax/pretrained").glob("*/README.md"))
    },
    **{
        str(table.relative_to(ROOT)): str(table.relative_to(ROOT))
        for table in sorted((ROOT / "results").rglob("*.md"))
    },
}


@event_priority(100)  # before the plugin that makes pages of notebooks
def on_files(files, config):
    """Adds README, CONTRIBUTING, CHANGELOG, model cards, tables, their figures, the notebooks."""
    for page, source in PAGES.items():
        text = links((ROOT / source).read_text())
        files.append(File.generated(config, page, content=text))
    for path in (*sorted(ROOT.glob("notebooks/*.ipynb")), *sorted(ROOT.glob("results/**/*.png"))):
        place = (str(path.relative_to(ROOT)), str(ROOT), config.site_dir)
        files.append(File(*place, config.use_directory_urls))
    return files


def on_page_markdown(markdown, page, config, files):
    """Pages of docs/ link to files beside docs/, as they must on a forge."""
    return links(markdown)


def links(text: str) -> str:
    """Links between files of the repository as links between pages."""
    text = re.sub(r"(\]\()(?:\.\./)?docs/", r"\1", text)
    # The longest path first: all cards are called README.md.
    for page, source in sorted(PAGES.items(), key=lambda item: -len(item[1])):
        text = re.sub(rf"(\]\()(?:\.\./)?{re.escape(source)}", rf"\1{page}", text)
    return re.sub(r"(\]\()\.\./((?:notebooks|results)/)", r"\1\2", text)
