"""`eva aws audit` as a user starts it, against accounts in which something is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from eva.adapters.aws.names import CLUSTER_TAG
from eva.adapters.aws.prices import Market, PriceFile, Prices
from tests.support.cloud_proxy import NAMESPACE, refusal
from tests.support.moto_server import REGION
from tests.unit.adapters.aws.account.bench import ACCOUNT, BUCKET, NAMES, AccountBench
from tests.unit.adapters.aws.account.estate import (
    JOURNAL,
    lose_interface,
    lose_volume,
    rent,
    write_book,
    write_journal,
)
from tests.unit.adapters.aws.account.test_commands import aws
from tests.unit.cli.conftest import eva

__all__ = ["aws", "eva"]  # fixtures by being here

ELSEWHERE = "eu-west-1"
_NOTHING = ("Known to", "LEFT OVER", "Set up", "On their way")
Words = tuple[str, ...]


def verdicts(outcome: Any, *kinds: str) -> dict[str, str]:
    found = outcome.json["found"]
    return {each["id"]: each["verdict"] for each in found if not kinds or each["kind"] in kinds}


def section(text: str, heading: str) -> str:
    """From its heading to the next empty line."""
    assert heading in text
    return text.partition(heading)[2].partition("\n\n")[0]


# Nothing


def test_of_an_empty_account_nothing_is_left(account: AccountBench, aws: Any) -> None:
    for words in ((), ("--all-clusters",)):
        outcome = aws("audit", *words)
        assert outcome.code == 0
        assert outcome.out.splitlines()[-1] == "Nothing is left."
        assert not any(heading in outcome.out for heading in _NOTHING)
    assert outcome.out.startswith(f"Account {ACCOUNT}, {REGION}, cluster main\n")
    assert f"There is no journal in {account.home}" in outcome.out
    assert not any(account.home.iterdir()), "it only reads"


def test_what_init_made_is_shown_and_is_nothing_left_over(account: AccountBench, aws: Any) -> None:
    aws("init", "--yes")
    outcome = aws("audit", columns=80)
    assert outcome.code == 0
    made = section(outcome.out, "Set up, and not billed by itself")
    for name in (*NAMES, BUCKET):
        assert name in made
    assert "$0.00/hour for instances" in outcome.out
    assert "Nothing is left over.\nNext: eva aws destroy " in outcome.out


def test_after_destroy_nothing_is_left(account: AccountBench, aws: Any) -> None:
    aws("init", "--yes")
    rent(account, "i-1")
    assert aws("audit", "--all-clusters").code == 1
    assert aws("destroy", "--yes", "--end-instances", "--delete-data").code == 0
    outcome = aws("audit", "--all-clusters")
    assert (outcome.code, outcome.out.splitlines()[-1]) == (0, "Nothing is left.")


# Instances


def test_instances_are_told_apart_by_the_journal(account: AccountBench, aws: Any) -> None:
    aws("init", "--yes")
    write_journal(account.home, "i-1", "i-2")
    needed = [rent(account, "i-1"), rent(account, "i-2")]
    outcome = aws("audit", columns=80)
    assert outcome.code == 0
    assert all(each in section(outcome.out, "Known to the journal") for each in needed)
    assert "$1.6096/hour for instances: $1.6096 known\n" in outcome.out
    assert "Nothing is left over.\nNext: eva down " in outcome.out
    leaked = rent(account, "i-7")
    outcome = aws("audit", columns=80)
    assert outcome.code == 1
    told = section(outcome.out, "LEFT OVER: the journal does not know them")
    assert leaked in told
    assert "There since 20" in told
    assert f"terminate-instances --region {REGION} \\\n      --instance-ids {leaked}" in told
    assert not any(each in told for each in needed)
    assert "$2.4144/hour for instances: $1.6096 known, $0.8048 left over\n" in outcome.out
    assert "1 left over that nobody here knows of.\nNext: eva up --cloud aws " in outcome.out


def test_the_second_instance_of_an_intent_is_left_over(account: AccountBench, aws: Any) -> None:
    write_journal(account.home, "i-1")
    first, second = rent(account, "i-1"), rent(account, "i-1")
    write_book(account.home, "i-1", second)
    outcome = aws("audit", "--json")
    assert outcome.code == 1
    assert verdicts(outcome, "instance") == {first: "double", second: "known"}


def test_another_journal_of_this_cluster_is_nobody_here(account: AccountBench, aws: Any) -> None:
    write_journal(account.home, "i-1")
    other, nameless = rent(account, "i-1", journal="eva-ffff"), rent(account, "i-1", journal="")
    outcome = aws("audit")
    told = section(outcome.out, "LEFT OVER: another journal's, of this cluster")
    assert outcome.code == 1
    assert other in told
    assert nameless in told
    assert "Asked for by journal eva-ffff" in told


def test_without_a_journal_it_cannot_be_told(account: AccountBench, aws: Any) -> None:
    aws("init", "--yes")
    there = rent(account, "i-1")
    outcome = aws("audit", columns=80)
    told = section(outcome.out, "LEFT OVER: no journal here knows them")
    assert outcome.code == 1
    assert there in told
    assert "There is no journal in" in told
    assert "Next: eva aws destroy --end-instances" in outcome.out


def test_a_journal_that_cannot_be_read_is_as_good_as_none(account: AccountBench, aws: Any) -> None:
    (account.home / "journal.db").write_text("no database " * 1_000)
    there = rent(account, "i-1")
    outcome = aws("audit", "--json")
    assert (outcome.code, verdicts(outcome, "instance")) == (1, {there: "untold"})
    assert "is damaged" in outcome.json["journal_missing"]


def test_a_journal_elsewhere_is_named(account: AccountBench, aws: Any, tmp_path: Any) -> None:
    write_journal(tmp_path / "disk", "i-1")
    there = rent(account, "i-1")
    outcome = aws("audit", "--json", "--store", str(tmp_path / "disk" / "journal.db"))
    assert (outcome.code, verdicts(outcome, "instance")) == (0, {there: "known"})
    assert outcome.json["journal"] == JOURNAL


def test_an_intent_that_came_while_ec2_was_looked_at_is_known(
    account: AccountBench, aws: Any
) -> None:
    write_journal(account.home)
    there = rent(account, "i-1")

    def written_meanwhile(action: str) -> None:
        if action == "DescribeSecurityGroups":
            write_journal(account.home, "i-1")

    account.proxy.script.on_call = written_meanwhile
    assert verdicts(aws("audit", "--json"), "instance") == {there: "known"}


def test_what_ends_already_is_neither_left_nor_billed(account: AccountBench, aws: Any) -> None:
    write_journal(account.home)
    gone, stopped = rent(account, "i-1"), rent(account, "i-2")
    account.proxy.launch_behind(gone, {}, 0)
    account.proxy.launches[0].ending_ms = 0
    account.proxy.script.terminated_after_ms = 1
    account.client("ec2").stop_instances(InstanceIds=[stopped])
    outcome = aws("audit", "--json")
    assert verdicts(outcome, "instance") == {gone: "ending", stopped: "unknown"}
    assert outcome.json["hourly_micros"] == 0, "of a stopped one the volume is billed"


# Prices


def test_prices_are_the_last_fetched_then_the_catalogs(account: AccountBench, aws: Any) -> None:
    write_journal(account.home, "i-1", "i-2", "i-3", "i-4")
    spot: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}}
    rent(account, "i-1")
    rent(account, "i-2", **spot)
    rent(account, "i-3", InstanceType="g6.2xlarge", **spot)
    rent(account, "i-4", InstanceType="t3.micro")
    known = Prices().refreshed(Market.SPOT, {"g6.xlarge": 300_000}, 1_800_000_000_000)
    PriceFile(account.home / "aws" / "prices.json").save(known)
    outcome = aws("audit", "--json", "--cluster", "main")
    found = [each for each in outcome.json["found"] if each["kind"] == "instance"]
    hourly = {each["intent"]: each["hourly_micros"] for each in found}
    assert (hourly["i-1"], hourly["i-2"], hourly["i-4"]) == (804_800, 300_000, None)
    assert 0 < hourly["i-3"] < 800_000
    assert outcome.json["unpriced"] == 1
    told = aws("audit", columns=80).out
    assert "No price is known here of t3.micro: 1 instance is not in it either." in told
    assert "Prices of 2025-09-01 to 2027-01-15." in told
    assert "g6.xlarge spot" in told


# Things that hang on instances


def test_loose_things_are_left_over(account: AccountBench, aws: Any) -> None:
    write_journal(account.home, "i-1")
    rent(account, "i-1")
    assert aws("audit").code == 0
    volume, interface = lose_volume(account), lose_interface(account)
    outcome = aws("audit", columns=80)
    assert outcome.code == 1
    told = section(outcome.out, "LEFT OVER: no instance has them")
    assert volume in told
    assert "100 GiB gp3" in told
    assert interface in told
    assert "On instances that are there, and ending with them: 1 volume" in outcome.out
    assert "2 left over that nobody here knows of." in outcome.out


def test_a_volume_on_an_instance_that_is_not_ours_is_in_use(
    account: AccountBench, aws: Any
) -> None:
    ec2 = account.client("ec2")
    volume = lose_volume(account)
    theirs = rent(account, "i-1", TagSpecifications=[])
    ec2.attach_volume(VolumeId=volume, InstanceId=theirs, Device="/dev/sdh")
    outcome = aws("audit", "--json")
    assert (outcome.code, verdicts(outcome)) == (0, {volume: "attached"})


def test_a_spot_request_without_an_instance_is_left_over(account: AccountBench, aws: Any) -> None:
    ec2 = account.client("ec2")
    asked = ec2.request_spot_instances(
        SpotPrice="0.5",
        LaunchSpecification={"ImageId": "ami-1e749f67", "InstanceType": "g6.xlarge"},
        TagSpecifications=[
            {
                "ResourceType": "spot-instances-request",
                "Tags": [{"Key": CLUSTER_TAG, "Value": "main"}],
            }
        ],
    )["SpotInstanceRequests"][0]["SpotInstanceRequestId"]
    there = ec2.describe_spot_instance_requests()["SpotInstanceRequests"][0].get("InstanceId")
    if there:
        assert verdicts(aws("audit", "--json"), "spot request") == {asked: "attached"}
        ec2.terminate_instances(InstanceIds=[there])
    outcome = aws("audit", "--json")
    assert (outcome.code, verdicts(outcome)) == (1, {asked: "loose"})


# Where


def test_other_clusters_are_shown_when_asked_for(account: AccountBench, aws: Any) -> None:
    aws("init", "--yes")
    write_journal(account.home, "i-1")
    ours, theirs = rent(account, "i-1"), rent(account, "i-1", cluster="second", journal="eva-2")
    assert verdicts(aws("audit", "--json"), "instance") == {ours: "known"}
    outcome = aws("audit", "--all-clusters", "--json")
    assert verdicts(outcome, "instance") == {ours: "known", theirs: "other-cluster"}
    assert outcome.code == 0, "what others run is theirs to judge"
    told = aws("audit", "--all-clusters", columns=80).out
    assert theirs in section(told, "Of other clusters")
    assert "second" in section(told, "Of other clusters")
    assert "$0.8048 known, $0.8048 of other clusters" in " ".join(told.split())
    volume = lose_volume(account, cluster="second")
    loose = aws("audit", "--all-clusters", "--json")
    assert (loose.code, verdicts(loose, "volume")[volume]) == (1, "loose"), "anybody can tell"


def test_where_only_others_are_nothing_of_ours_is_left(account: AccountBench, aws: Any) -> None:
    rent(account, "i-1", cluster="second", journal="eva-2")
    outcome = aws("audit", "--all-clusters")
    assert (outcome.code, outcome.out.splitlines()[-1]) == (0, "Nothing is left of cluster main.")


@pytest.fixture
def ec2_elsewhere(account: AccountBench) -> Iterator[Any]:
    regions = "".join(
        f"<item><regionName>{each}</regionName></item>" for each in (ELSEWHERE, REGION)
    )
    account.proxy.script.answers["DescribeRegions"] = (
        f'<DescribeRegionsResponse xmlns="{NAMESPACE}/"><regionInfo>{regions}</regionInfo>'
        "</DescribeRegionsResponse>"
    )
    client = boto3.client(
        "ec2",
        endpoint_url="http://{}:{}".format(*account.proxy.upstream),
        region_name=ELSEWHERE,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )
    yield client
    client.close()


def test_every_region_is_looked_at(account: AccountBench, aws: Any, ec2_elsewhere: Any) -> None:
    aws("init", "--yes")
    write_journal(account.home, "i-1")
    rent(account, "i-1")
    leaked = rent(account, "i-2", client=ec2_elsewhere)
    assert aws("audit").code == 0
    outcome = aws("audit", "--all-regions", columns=80)
    told = section(outcome.out, "LEFT OVER: the journal does not know them")
    assert outcome.code == 1
    assert leaked in told
    assert f"--region {ELSEWHERE}" in told
    assert f"They are those of {REGION}; elsewhere they may differ." in outcome.out
    assert f"Next: aws ec2 ... as above, for what is not in {REGION}" in outcome.out
    alone = aws("audit", "--json", "--region", ELSEWHERE)
    assert verdicts(alone, "instance") == {leaked: "unknown"}
    assert alone.json["regions"] == [ELSEWHERE]


def test_a_region_that_is_closed_is_told_and_nothing_is_promised(
    account: AccountBench, aws: Any, ec2_elsewhere: Any
) -> None:
    closed = refusal("UnauthorizedOperation", 403)
    left = ["DescribeInstances"]
    account.proxy.script.decide = lambda action: closed if action in left and left.pop() else None
    outcome = aws("audit", "--all-regions")
    assert outcome.code == 1
    assert "could not be looked at: listing what bears the cluster's tag: ec2" in outcome.out
    assert outcome.out.splitlines()[-1] == "Nothing is left over where it was looked."


# Input and output


@pytest.mark.parametrize(
    ("words", "say"),
    [
        (("--cluster", "no name!"), "'no name!' is not 'main', which"),
        (("--cluster", "second"), "'second' is not 'main', which"),
        (("--cluster", "main", "--all-clusters"), "--cluster: 'main' and --all-clusters contra"),
        (("--region", REGION, "--all-regions"), "--region: 'us-east-1' and --all-regions contra"),
        (("--store", "/nowhere/journal.db"), "--store: there is no journal at /nowhere/journal.db"),
        (("--catalog", "none"), "none"),
    ],
)
def test_wrong_words_are_refused(account: AccountBench, aws: Any, words: Words, say: str) -> None:
    account.init()
    outcome = aws("audit", *words)
    assert outcome.code == 2
    assert say in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1


def test_what_is_no_name_of_a_cluster_is_refused(account: AccountBench, aws: Any) -> None:
    outcome = aws("audit", "--cluster", "no name!")
    assert (outcome.code, "'no name!' is no name" in outcome.err) == (2, True)
    assert account.proxy.calls == []


def test_it_fits_80_columns_also_with_the_longest_names(account: AccountBench, aws: Any) -> None:
    aws("init", "--yes")
    write_journal(account.home, "i-100000", "i-2")
    rent(account, "i-100000", InstanceType="p4de.24xlarge")
    rent(account, "i-2", InstanceMarketOptions={"MarketType": "spot"})
    rent(account, "i-3", InstanceType="p4de.24xlarge")
    rent(account, "i-4", journal="eva-ffffffff")
    lose_volume(account)
    outcome = aws("audit", "--all-clusters", columns=80)
    home = str(account.home)
    assert [line for line in outcome.out.splitlines() if len(line) > 80 and home not in line] == []


def test_json_says_all_of_it(account: AccountBench, aws: Any) -> None:
    aws("init", "--yes")
    write_journal(account.home, "i-1")
    rent(account, "i-1")
    leaked = rent(account, "i-7")
    outcome = aws("audit", "--json")
    found = outcome.json
    assert outcome.code == 1
    assert (found["account"], found["journal"], found["journal_missing"]) == (
        ACCOUNT,
        JOURNAL,
        None,
    )
    assert (found["clean"], found["left_over"]) == (False, 1)
    assert (found["hourly_micros"], found["left_over_hourly_micros"]) == (1_609_600, 804_800)
    (each,) = [each for each in found["found"] if each["left_over"]]
    assert (
        each.items()
        >= {
            "kind": "instance",
            "id": leaked,
            "cluster": "main",
            "region": REGION,
            "type": "g6.xlarge",
            "spot": False,
            "state": "running",
            "intent": "i-7",
            "verdict": "unknown",
            "hourly_micros": 804_800,
            "price_as_of": "2025-09-01",
        }.items()
    )
    assert each["age_ms"] >= 0
    assert each["remove"].endswith(f"--instance-ids {leaked}")
    kinds = {each["kind"] for each in found["found"]}
    assert kinds == {"instance", "volume", "security group", "role", "instance profile", "bucket"}
