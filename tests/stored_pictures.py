"""Pictures too are compared with the stored ones, which nbval leaves out: `make test` loads this for its run.

Compared is by the distance that lets `make notebooks` keep a stored picture. Left out are curves that grow while
their cell runs, since nbval sees only their first frame (test_training draws them from made-up data), and pictures of
measured times. The curves of a training are known by their words too, since a cell may call a function that watches.
"""

import base64
import io

from nbval.plugin import IPyNbCell
from PIL import Image

from courseware.keep import differ, timed, trained

compare = IPyNbCell.compare_outputs


def pictures(outputs: list) -> list[Image.Image]:
    shown = [output["data"] for output in outputs if "image/png" in output.get("data", {})]
    encoded = [data["image/png"] for data in shown if " while training, " not in data["text/plain"]]
    return [Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB") for png in encoded]


def compare_outputs(self: IPyNbCell, test: list, ref: list, skip_compare: object = None) -> bool:
    if not compare(self, test, ref, skip_compare):
        return False
    new, old = pictures(test), pictures(ref)
    if not new and not old:
        return True
    cells = self.parent.nb.cells
    (number,) = (number for number, cell in enumerate(cells) if cell is self.cell)
    learned = trained(cells, number)
    same = len(new) == len(old) and not any(differ(a, b, trained=learned) for a, b in zip(new, old))
    if same or ".watch()" in self.cell.source or timed(cells, number):
        return True
    self.comparison_traceback.append("the picture looks different from the stored one")
    return False


IPyNbCell.compare_outputs = compare_outputs
