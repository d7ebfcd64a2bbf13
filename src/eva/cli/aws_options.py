"""What the commands of `eva aws` are told in the same words: which cluster, where, by what file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.connecting import home_folder

if TYPE_CHECKING:
    from eva.adapters.aws.account.target import Target, Wishes

RegionOption = Annotated[
    str,
    typer.Option("--region", metavar="NAME", help="Default: as before, else as boto3 is set up."),
]
ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster",
        metavar="NAME",
        help="Marks what is ours; nobody else in the account may use it. Default: as before, else "
        "main.",
    ),
]
EndpointOption = Annotated[
    str,
    typer.Option("--endpoint-url", metavar="URL", help="Another address of AWS, for emulators."),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--aws-config", metavar="FILE", help="Default: aws.yaml in the home folder."),
]


def target_of(
    home: str | None, path: Path | None, wishes: Wishes, *, any_region: bool = False
) -> Target:
    from eva.adapters.aws.account.target import find_target
    from eva.adapters.aws.config_file import FILE_NAME

    folder = home_folder(home)
    return find_target(folder, path or folder / FILE_NAME, wishes, any_region=any_region)
