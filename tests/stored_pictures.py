"""Pictures too are compared with the stored ones, which nbval leaves out: `make test` loads this for its run.

Compared is by the distance that lets `make notebooks` keep a stored picture. Left out are curves that grow while
their cell runs, since nbval sees only their first frame (test_training draws them from made-up data), and pictures of
measured times.
"""

import base64
import io
import re

from nbval.plugin import IPyNbCell
from PIL import Image

from courseware.dependencies import needed_cells
from courseware.keep import differ

compare = IPyNbCell.compare_outputs


def pictures(outputs: list) -> list[Image.Image]:
    encoded = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    return [Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB") for png in encoded]


def timed(item: IPyNbCell) -> bool:
    """Whether a measured time is among what the cell shows."""
    cells = item.parent.nb.cells
    (number,) = (n for n, cell in enumerate(cells) if cell is item.cell)
    needed = needed_cells(cells, [number])
    return any(re.search(r"\bmeasure\(|perf_counter", cells[other].source) for other in needed)


def compare_outputs(self: IPyNbCell, test: list, ref: list, skip_compare: object = None) -> bool:
    if not compare(self, test, ref, skip_compare):
        return False
    new, old = pictures(test), pictures(ref)
    same = len(new) == len(old) and not any(map(differ, new, old))
    if same or ".watch()" in self.cell.source or timed(self):
        return True
    self.comparison_traceback.append("the picture looks different from the stored one")
    return False


IPyNbCell.compare_outputs = compare_outputs
