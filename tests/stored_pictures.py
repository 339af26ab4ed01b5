"""Pictures too are compared with the stored ones, which nbval leaves out: `make test` loads this for its run.

Compared is as `make notebooks` does it, which keeps a stored output that says the same: pictures by a distance, and of
those that a training led to the size alone, since another processor's arithmetic draws other curves. Left out are
pictures of measured times.
"""

from nbformat import from_dict
from nbval.plugin import IPyNbCell

from courseware.keep import look_the_same, timed, trained, words

compare = IPyNbCell.compare_outputs


def compare_outputs(self: IPyNbCell, test: list, ref: list, skip_compare: object = None) -> bool:
    cells = self.parent.nb.cells
    (number,) = (number for number, cell in enumerate(cells) if cell is self.cell)
    learned = trained(cells, number)
    said, stored = ([from_dict(words(each, trained=learned)) for each in outputs] for outputs in (test, ref))
    if not compare(self, said, stored, skip_compare):
        return False
    if timed(cells, number) or look_the_same(test, ref, trained=learned):
        return True
    self.comparison_traceback.append("the picture looks different from the stored one")
    return False


IPyNbCell.compare_outputs = compare_outputs
