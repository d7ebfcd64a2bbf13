"""`eva aws audit`: everything in an account that bears a cluster's tag, whose it is, what it costs.

It only reads. Beside AWS it asks this home: the journal which instances are needed, the book of
launches which instance each intent got, and the last good copy of the prices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.aws_options import ClusterOption, ConfigOption, EndpointOption, target_of
from eva.cli.catalog import complete_catalog
from eva.cli.connecting import HomeOption
from eva.cli.console import JsonOption, print_json, stdout

if TYPE_CHECKING:
    from pathlib import Path

    from eva.adapters.aws.account.audit import Known
    from eva.adapters.aws.prices import Prices
    from eva.model.catalog import Catalog

LookInOption = Annotated[
    str,
    typer.Option(
        "--region", metavar="NAME", help="Default: that of aws.yaml, else as boto3 is set up."
    ),
]
CatalogOption = Annotated[
    str,
    typer.Option(
        "--catalog",
        "-c",
        metavar="NAME|FILE",
        help="As the master has it: its prices stand in for those never fetched.",
        autocompletion=complete_catalog,
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL|FILE",
        help="The journal, as the master has it: postgresql://... or a file.",
    ),
]


def audit(
    home: HomeOption = None,
    region: LookInOption = "",
    all_regions: Annotated[
        bool, typer.Option("--all-regions", help="Look in every region of the account.")
    ] = False,
    cluster: ClusterOption = "",
    all_clusters: Annotated[
        bool, typer.Option("--all-clusters", help="Show what bears any cluster's tag.")
    ] = False,
    store: StoreOption = None,
    catalog: CatalogOption = "aws",
    aws_config: ConfigOption = None,
    endpoint_url: EndpointOption = "",
    json: JsonOption = False,
) -> None:
    """Show everything that bears the cluster's tag: whose it is, what it costs, what is left over.

    It only reads. Left over are instances that the journal in the home folder does not know, or
    that no journal is there to tell of, and volumes, network interfaces and spot requests whose
    instance is gone. Exit code 0 where nothing is left over, 1 where something is, or where a
    region could not be looked at, 2 for wrong input.
    """
    from eva.adapters.aws.account.audit import Scope
    from eva.adapters.aws.account.audit import audit as look
    from eva.adapters.aws.account.target import Wishes
    from eva.cli.aws_audit_text import as_json, shown
    from eva.inputs import catalogs
    from eva.master.clock import wall_ms

    _check(region, cluster, all_regions=all_regions, all_clusters=all_clusters)
    target = target_of(home, aws_config, Wishes(cluster, region, endpoint_url), any_region=True)
    listed = catalogs.load(catalog)
    scope = Scope(all_clusters=all_clusters, all_regions=all_regions)
    found = look(
        target.api(),
        target,
        scope,
        lambda: known_to(target.home, store, listed),
        _prices(target.home, listed),
        wall_ms(),
    )
    if json:
        print_json(as_json(found))
    else:
        console = stdout()
        for each in shown(found):
            console.print(each, markup=False)
    if not found.is_clean:
        raise typer.Exit(1)


def known_to(home: Path, store: str | None, price_list: Catalog) -> Known:
    """What the journal of this home knows. One that cannot be read is as good as none, and told."""
    from eva.adapters.aws.account.audit import Known
    from eva.adapters.aws.book import granted
    from eva.adapters.aws.ec2 import BOOK_FILE
    from eva.master.intents import read_intents
    from eva.model.errors import EvaError, InputError

    try:
        found = read_intents(store, home, price_list)
        if found is None:
            return Known(missing=f"there is no journal in {home}")
        refs = granted(home.resolve() / "aws" / found.journal / BOOK_FILE)
    except InputError:
        raise
    except EvaError as error:
        return Known(missing=f"the journal cannot be read: {error}")
    return Known(found.journal, {each: refs.get(each) for each in sorted(found.open)})


def _prices(home: Path, listed: Catalog) -> Prices:
    """Those that the master fetched last; else the catalog's, also what is typical of spot."""
    from eva.adapters.aws.listing import PRICE_FILE
    from eva.adapters.aws.prices import Market, Price, PriceFile, Prices

    found = PriceFile(home / "aws" / PRICE_FILE).load().completed(listed)
    typical = {
        (Market.SPOT, kind.name): Price(kind.spot_hourly_micros, dated.as_of_ms)
        for kind in listed
        if kind.spot_hourly_micros and (dated := found.of(kind.name)) is not None
    }
    return Prices({**typical, **found.known})


def _check(region: str, cluster: str, *, all_regions: bool, all_clusters: bool) -> None:
    from eva.model.errors import InputError, Problem

    both = [
        Problem(f"--{name}", f"{given!r} and --all-{name}s contradict each other: give one")
        for name, given, every in (
            ("region", region, all_regions),
            ("cluster", cluster, all_clusters),
        )
        if given and every
    ]
    if both:
        raise InputError(both)
