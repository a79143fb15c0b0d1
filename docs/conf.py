"""How Sphinx makes a site of the manual: `make docs`.

The source directory is the repository and not `docs/`: the manual links to pages that stand beside
`docs/`, and so each relative link leads to the same page on the site and on a code host.
"""

import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

from orcalike import __version__

lexers["mermaid"] = TextLexer()  # code hosts draw these; here they are text

sys.path.append(str(Path(__file__).parent))

project = "orcalike"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "docstrings"]
root_doc = "docs/index"
source_suffix = {".md": "markdown"}
include_patterns = ["*.md", "docs/**", "examples/README.md"]
# Said, so that Sphinx does not look through them.
exclude_patterns = [".*", "bench", "build", "dist", "orcalike", "runtime", "tests", "transport"]

html_theme = "furo"
html_title = f"orcalike {release}"
html_extra_path = ["redirect"]  # the first page is not at the top

myst_heading_anchors = 4  # those of code hosts, for links to `page.md#section`

default_role = "code"  # docstrings have single backticks around code
autodoc_default_options = {
    "members": True,
    # What orcalike itself calls.
    "exclude-members": "member_left, pack, restore, set_error, set_result, snapshot, unpack",
}
# The guests' engines are large, and none of their names is shown.
autodoc_mock_imports = ["distributed", "ray"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
# The names of types that many signatures have, in place of what they stand for.
autodoc_type_aliases = {name: name for name in ("ArrayLike", "DTypeLike", "Duration", "Resilience")}

# Types in signatures that have no entry of their own: of other packages, variables, or not public.
nitpick_ignore_regex = [
    ("py:.*", r"(?!orcalike\.(\w+|(messages|objects|testing|ext\.dask|ext\.ray)\.\w+)$).*")
]
