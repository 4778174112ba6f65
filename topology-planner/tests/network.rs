//! Link measurements: the contents of a file, and the forecast made from it.

#![allow(clippy::unwrap_used)]

use mingle_planner::{
    DesignError, DesignOptions, Method, Plan, Topology, design, link_measurements::LinkMeasurements, plan::Medium,
};

/// Three nodes in a row; cho has a slow upload.
const FILE: &str = "
[[link]]
from = 'ana'
to = 'ben'
rtt_ms = 20
mbit_s = 80
[[link]]
from = 'ben'
to = 'ana'
rtt_ms = 20
mbit_s = 40
loss = 0.5
[[link]]
from = 'ben'
to = 'cho'
rtt_ms = 40
mbit_s = 80
[[link]]
from = 'cho'
to = 'ben'
rtt_ms = 40
mbit_s = 80
[node.ben]
upload_mbit_s = 60
[node.cho]
upload_mbit_s = 8
";

fn plan(medium: Medium) -> Plan {
    let measurements = LinkMeasurements::parse(FILE).unwrap();
    let topology = measurements.topology().unwrap();
    let network = measurements.network(&topology, 1_000_000).unwrap();
    let options = DesignOptions { medium, network: Some(network), ..DesignOptions::default() };
    design(&topology, Method::SgpUniform, &options).unwrap()
}

#[test]
fn a_step_lasts_until_its_slowest_payload_has_arrived() {
    let plan = plan(Medium::PointToPoint);
    // ben shares 60 Mbit/s between ana and cho: 30 each. A megabyte is 8 Mbit; half of the packets to ana are lost.
    let expected =
        [(0, 1, 0.01 + 8.0 / 80.0), (1, 0, 0.01 + 16.0 / 30.0), (1, 2, 0.02 + 8.0 / 30.0), (2, 1, 0.02 + 8.0 / 8.0)];
    let network = plan.network().unwrap();
    let arrivals = network.arrivals(&plan.steps()[0], Medium::PointToPoint);
    for (arrival, (from, to, seconds)) in arrivals.iter().zip(expected) {
        assert_eq!((arrival.from, arrival.to), (from, to));
        assert!((arrival.seconds - seconds).abs() < 1e-12, "{arrival:?}");
    }
    assert_eq!(plan.forecast().seconds_per_period, Some(1.02));
    assert_eq!(plan.forecast().bytes_per_node_per_period, Some(2_000_000));
    let slowest = network.slowest_link(plan.steps(), Medium::PointToPoint).unwrap();
    assert_eq!((slowest.from, slowest.to), (2, 1));
}

#[test]
fn a_link_with_room_takes_what_others_leave_of_a_shared_upload() {
    let text = FILE.replace("mbit_s = 40", "mbit_s = 10");
    let measurements = LinkMeasurements::parse(&text).unwrap();
    let topology = measurements.topology().unwrap();
    let network = measurements.network(&topology, 1_000_000).unwrap();
    let medium = Medium::PointToPoint;
    let options = DesignOptions { medium, network: Some(network.clone()), ..DesignOptions::default() };
    let plan = design(&topology, Method::SgpUniform, &options).unwrap();
    let to_cho = network.arrivals(&plan.steps()[0], medium)[2];
    assert!((to_cho.seconds - (0.02 + 8.0 / 50.0)).abs() < 1e-12, "60 less the 10 that ana can take: {to_cho:?}");
}

#[test]
fn on_a_shared_channel_slots_follow_one_another_and_one_broadcast_serves_all() {
    let plan = plan(Medium::Broadcast);
    // ana and cho cannot transmit at once: both would reach ben.
    assert_eq!(plan.steps()[0].slots().len(), 3);
    let expected = (0.01 + 8.0 / 80.0) + (0.01 + 16.0 / 40.0) + (0.02 + 8.0 / 8.0);
    assert!((plan.forecast().seconds_per_period.unwrap() - expected).abs() < 1e-9);
    assert_eq!(plan.forecast().bytes_per_node_per_period, Some(1_000_000));
}

#[test]
fn a_plan_carries_the_measurements_its_forecast_was_made_from() {
    let plan = plan(Medium::PointToPoint);
    let from_file = Plan::from_json(&plan.to_json()).unwrap();
    assert_eq!((&from_file, from_file.hash()), (&plan, plan.hash()));
    assert_eq!(Plan::from_postcard(&plan.to_postcard().unwrap()).unwrap(), plan);
    assert_eq!(plan.forecast_differences().unwrap(), []);
    let faster = plan.to_json().replace("[2, 1, 40.0, 80.0, 0.0]", "[2, 1, 40.0, 4.0, 0.0]");
    let fields: Vec<_> =
        Plan::from_json(&faster).unwrap().forecast_differences().unwrap().iter().map(|d| d.field).collect();
    assert_eq!(fields, ["seconds_per_period", "seconds_to_1e-2"]);
    let broken = plan.to_json().replace("[2, 1, 40.0, 80.0, 0.0]", "[2, 1, 40.0, 80.0, 1.0]");
    let message = Plan::from_json(&broken).unwrap_err().to_string();
    assert_eq!(message, "the loss of the link from cho to ben is 1: it must be a fraction from 0 to 0.99");
}

#[test]
fn a_limit_on_uploads_is_a_promise() {
    let measurements = LinkMeasurements::parse(FILE).unwrap();
    let topology = measurements.topology().unwrap();
    let network = measurements.network(&topology, 1_000_000).unwrap();
    let options = |limit, network| DesignOptions {
        medium: Medium::PointToPoint,
        network,
        max_upload_bytes: Some(limit),
        ..DesignOptions::default()
    };
    assert!(design(&topology, Method::SgpUniform, &options(2_000_000, Some(network.clone()))).is_ok());
    let refused = design(&topology, Method::SgpUniform, &options(1_999_999, Some(network))).unwrap_err();
    assert!(matches!(refused, DesignError::Upload { needed: 2_000_000, .. }), "{refused}");
    let unknown = design(&topology, Method::SgpUniform, &options(1, None)).unwrap_err();
    assert_eq!(unknown, DesignError::UploadWithoutNetwork);
}

#[test]
fn measurements_that_cannot_be_used_are_refused_by_line_or_by_name() {
    for (from, to, message) in [
        (
            "mbit_s = 40",
            "mbit_s = nan",
            "the bandwidth of the link from ben to ana is NaN: it must be Mbit/s from 10^-6 to 10^9",
        ),
        (
            "mbit_s = 40",
            "mbit_s = 0",
            "the bandwidth of the link from ben to ana is 0: it must be Mbit/s from 10^-6 to 10^9",
        ),
        (
            "loss = 0.5",
            "loss = -0.5",
            "the loss of the link from ben to ana is -0.5: it must be a fraction from 0 to 0.99",
        ),
        ("rtt_ms = 20\nmbit_s = 80", "mbit_s = 80", "line 2: missing field `rtt_ms`"),
        (
            "loss = 0.5",
            "los = 0.5",
            "line 12: unknown field `los`, expected one of `from`, `to`, `rtt_ms`, `mbit_s`, `loss`",
        ),
        (
            "upload_mbit_s = 60",
            "upload_mbit_s = -1",
            "the upload of node ben is -1: it must be Mbit/s from 10^-6 to 10^9",
        ),
        (
            "from = 'ana'\nto = 'ben'",
            "from = 'ben'\nto = 'ana'",
            "the link from ben to ana is measured twice: keep one",
        ),
        ("from = 'ana'\nto = 'ben'", "from = 'ana'\nto = 'ana'", "the link from ana to itself: a node needs none"),
    ] {
        let text = FILE.replacen(from, to, 1);
        assert_ne!(text, FILE, "{from}");
        assert_eq!(LinkMeasurements::parse(&text).unwrap_err().to_string(), message);
    }
    assert!(LinkMeasurements::parse("").unwrap_err().to_string().starts_with("there are no links"));
}

#[test]
fn measurements_and_topology_have_to_name_the_same_nodes_and_links() {
    let measurements = LinkMeasurements::parse(FILE).unwrap();
    let refusal = |text: &str| measurements.network(&Topology::parse(text).unwrap(), 1).unwrap_err().to_string();
    assert_eq!(refusal("ana ben\n"), "there is no node cho in the topology");
    let missing = "the link from ana to cho is in the topology, and was not measured: add it, or leave out the edge";
    assert_eq!(refusal("ana ben\nben cho\nana cho\n"), missing);
    let one_way = LinkMeasurements::parse("[[link]]\nfrom='a'\nto='b'\nrtt_ms=1\nmbit_s=1\n").unwrap();
    let message = one_way.topology().unwrap_err().to_string();
    assert!(message.starts_with("the links that are measured in both directions make no topology"), "{message}");
}

#[test]
fn auto_chooses_by_seconds_where_links_are_measured() {
    let measurements = LinkMeasurements::parse(FILE).unwrap();
    let topology = measurements.topology().unwrap();
    for medium in [Medium::Broadcast, Medium::PointToPoint] {
        let network = measurements.network(&topology, 1_000_000).unwrap();
        let options = DesignOptions { medium, network: Some(network), ..DesignOptions::default() };
        let chosen = design(&topology, Method::Auto, &options).unwrap();
        let reason = chosen.parameters()["reason"].to_string();
        assert!(reason.contains(" seconds for a gradient step"), "{reason}");
        let seconds = |plan: &Plan| design::cost(plan, &options).unwrap();
        for method in [Method::NguyenHe, Method::DPsgd, Method::SgpUniform, Method::ExactAverage] {
            assert!(seconds(&chosen) <= seconds(&design(&topology, method, &options).unwrap()), "{method}");
        }
    }
}
