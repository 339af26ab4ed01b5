"""Load a model of transformers from a folder, or from a hub where there is one."""

from pathlib import Path

from torch import nn

INSTALL = 'pip install -c constraints.txt -e ".[models]"'


def load(where: str | Path) -> nn.Module:
    """A model as `save_pretrained` stored it, ready to be asked; nothing is downloaded but by its name.

    Args:
        where: a folder; or a model's name on the hub, such as "openai-community/gpt2". A Path, and what begins
            with ".", "/" or "~", is a folder.

    Raises:
        ModuleNotFoundError: transformers is not installed.
        FileNotFoundError: there is no such folder.
        ValueError: it is a file, the folder holds no model, or what it holds cannot be read.
        OSError: the hub cannot be reached, or has no model of this name.
    """
    try:
        from transformers import AutoModel
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"this needs transformers; in the course's folder run  {INSTALL}") from None
    folder = Path(where).expanduser()
    if folder.is_file():
        raise ValueError(
            f"{where} is a file: pass the folder that save_pretrained wrote, with config.json in it"
        )
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ValueError(
                f"{where} has no config.json: pass the folder that model.save_pretrained(folder) wrote"
            )
        try:
            return AutoModel.from_pretrained(folder, local_files_only=True).eval()
        except Exception as error:  # noqa: BLE001 - a library of a thousand models raises all there is
            raise ValueError(f"{where} cannot be read: {_first_line(error)}") from None
    if isinstance(where, Path) or str(where).startswith((".", "/", "~")):
        raise FileNotFoundError(
            f"there is no folder {where}: save a model first, with model.save_pretrained(folder)"
        )
    try:
        return AutoModel.from_pretrained(where).eval()
    except (OSError, ValueError) as error:
        raise OSError(
            f"{where!r} is no folder here, and the hub did not give a model of that name: {_first_line(error)}"
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
