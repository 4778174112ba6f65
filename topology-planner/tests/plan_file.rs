//! Plan files with mistakes of hand editing: each is refused with its position.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use mingle_planner::{
    DesignOptions, ExtraEdges, Link, Medium, Method, Parameter, Plan, PlanError, PlanHash, Topology, WeightedLink,
    design,
    plan::{PlanDraft, StepDraft},
};

/// The path of three nodes: links 0-1-2 both ways, in slots {0->1}, {2->1}, {1->0, 1->2}.
fn path_plan() -> Plan {
    let path = Topology::parse("ana ben\nben cho\n").unwrap();
    let options = DesignOptions { extra_edges: ExtraEdges::Exactly(0), ..DesignOptions::default() };
    design(&path, Method::NguyenHe, &options).unwrap()
}

/// The plan file with one piece of text replaced, which must occur once.
fn edited(from: &str, to: &str) -> String {
    let text = path_plan().to_json();
    assert_eq!(text.matches(from).count(), 1, "{from:?} must occur once in\n{text}");
    text.replace(from, to)
}

fn refusal(from: &str, to: &str) -> String {
    Plan::from_json(&edited(from, to)).unwrap_err().to_string()
}

#[test]
fn the_plan_file_is_compact_and_readable() {
    let expected = r#"{
  "format": "mingle-plan/1",
  "method": "nguyen-he",
  "parameters": { "extra_edges": 0, "seed": 0 },
  "nodes": [
    { "name": "ana", "peer": null },
    { "name": "ben", "peer": null },
    { "name": "cho", "peer": null }
  ],
  "base": {
    "edges": [
      [0, 1], [1, 2]
    ],
    "interference": null
  },
  "medium": "broadcast",
  "network": null,
  "steps": [
    {
      "keep": [
        0.5, 0.3333333333333333, 0.5
      ],
      "links": [
        [0, 1, 0.5],
        [1, 0, 0.3333333333333333],
        [1, 2, 0.3333333333333333],
        [2, 1, 0.5]
      ],
      "slots": [
        [[0, 1]],
        [[2, 1]],
        [[1, 0], [1, 2]]
      ]
    }
  ],
  "local_steps": 1,
  "round_length": 1,
  "forecast": {
    "slots_per_period": 3,
    "links": 4,
    "max_out_degree": 2,
    "max_in_degree": 2,
    "diameter": 2,
    "ln_objective_16": 11.27380496,
    "ln_objective_19": 11.56148703,
    "lambda_2": 0.5,
    "lambda_2_note": null,
    "slots_per_neper": 4.328085123,
    "slots_to_1e-2": 21,
    "periods_to_1e-2": 7,
    "periods_to_1e-2_note": null,
    "perron_min": 0.8571428571,
    "perron_max": 1.285714286,
    "payloads_per_period": 3,
    "slots_lower_bound": 3,
    "critical_nodes": 1,
    "critical_links": 4,
    "seconds_per_period": null,
    "seconds_to_1e-2": null,
    "bytes_per_node_per_period": null
  }
}
"#;
    assert_eq!(path_plan().to_json(), expected);
}

/// The edited text, its replacement, and the beginning of the refusal.
const HAND_EDITS: &[(&str, &str, &str)] = &[
    ("[0, 1, 0.5]", "[0, 1, 0.43]", "step 0: what node 0 keeps and gives adds up to 0.9299999999999999, not 1"),
    ("[0, 1, 0.5]", "[0, 1, 0.0]", "step 0: link 0 -> 1 has weight 0, which is not above 0 and at most 1"),
    ("[0, 1, 0.5]", "[0, 1, -0.5]", "step 0: link 0 -> 1 has weight -0.5"),
    ("[0, 1, 0.5]", "[0, 1, 1.5]", "step 0: link 0 -> 1 has weight 1.5"),
    ("[0, 1, 0.5]", "[0, 2, 0.5]", "step 0: link 0 -> 2 is not on an edge of the base graph"),
    ("[0, 1, 0.5]", "[0, 0, 0.5]", "step 0: link 0 -> 0 is not on an edge of the base graph"),
    ("[0, 1, 0.5]", "[0, 7, 0.5]", "step 0: link 0 -> 7 names a node that does not exist"),
    ("[0, 1, 0.5]", "[0, 1, 0.25], [0, 1, 0.25]", "step 0: link 0 -> 1 is listed twice"),
    ("0.5, 0.3333333333333333, 0.5\n", "0.5, 0.3333333333333333\n", "step 0: keep has 2 numbers for 3 nodes"),
    ("0.5, 0.3333333333333333, 0.5\n", "0.5, 0.3333333333333333, 1.25\n", "step 0: node 2 keeps 1.25"),
    ("[[0, 1]],\n", "[[0, 1], [2, 1]],\n", "step 0, slot 0: links 0 -> 1 and 2 -> 1 conflict"),
    ("[[0, 1]],\n", "", "step 0: link 0 -> 1 is in no slot"),
    ("[[0, 1]],\n", "[[0, 1]], [],\n", "step 0: slot 1 is empty"),
    ("[[0, 1]],\n", "[[0, 1]], [[0, 1]],\n", "step 0: link 0 -> 1 is in slot 0 and again in slot 1"),
    ("[[0, 1]],\n", "[[0, 2]],\n", "step 0: slot 0 has link 0 -> 2, which is not among the links"),
    ("[0, 1], [1, 2]\n", "[0, 1], [1, 2], [2, 1]\n", "base.edges: edge [1, 2] is listed twice"),
    ("[0, 1], [1, 2]\n", "[0, 1], [1, 2], [1, 1]\n", "base: node \"ben\" has an edge to itself"),
    (
        "[0, 1], [1, 2]\n",
        "[0, 1]\n",
        "base: the topology falls into 2 parts with no edge between them: {ana, ben}, {cho}",
    ),
    ("[0, 1], [1, 2]\n", "[0, 1], [1, 3]\n", "base: edge [1, 3] names a node that does not exist"),
    (
        "\"interference\": null",
        "\"interference\": [[0, 1]]",
        "base: the interference graph lacks the edge \"ben\" - \"cho\"",
    ),
    ("\"broadcast\"", "\"point-to-point\"", "step 0 has slots, but the medium is point-to-point"),
    ("\"name\": \"cho\"", "\"name\": \"ana\"", "base: two nodes are called \"ana\""),
    (
        "{ \"name\": \"cho\", \"peer\": null }",
        "{ \"name\": \"cho\", \"peer\": \"\" }",
        "the peer of node 2 is not usable",
    ),
    ("\"nguyen-he\"", "\"\"", "the name of the method is not usable"),
    ("\"mingle-plan/1\"", "\"mingle-plan/2\"", "the format is \"mingle-plan/2\": this program reads \"mingle-plan/1\""),
];

#[test]
fn hand_edits_are_refused_with_the_place_they_are_at() {
    for (from, to, message) in HAND_EDITS.iter().copied() {
        let refused = refusal(from, to);
        assert!(refused.starts_with(message), "{from:?} -> {to:?}: {refused}");
    }
}

#[test]
fn unknown_and_missing_keys_are_refused_with_line_and_column() {
    for (from, to, line, message) in [
        ("\"medium\": \"broadcast\",", "\"medium\": \"broadcast\", \"color\": 1,", 16, "unknown field `color`"),
        ("\"local_steps\": 1,\n", "", 61, "missing field `local_steps`"),
        ("\"interference\": null", "\"interferense\": null", 14, "unknown field `interferense`"),
        ("\"diameter\": 2,", "\"diameter\": 2, \"radius\": 1,", 43, "unknown field `radius`"),
        ("\"format\": \"mingle-plan/1\",\n", "", 61, "missing field `format`"),
        ("\"local_steps\": 1", "\"local_steps\": -1", 36, "invalid value"),
    ] {
        let error = Plan::from_json(&edited(from, to)).unwrap_err();
        let PlanError::Json { line: found, message: said, .. } = &error else { panic!("{error}") };
        assert!(*found == line && said.starts_with(message), "{to:?}: {error}");
    }
}

#[test]
fn a_period_that_does_not_reach_every_node_is_refused() {
    // Node 2 keeps all it has: its link is gone, and with it every path from it.
    let text = edited("0.5, 0.3333333333333333, 0.5\n", "0.5, 0.3333333333333333, 1.0\n");
    let text = text.replace(",\n        [2, 1, 0.5]", "");
    let text = text.replace("        [[2, 1]],\n", "");
    let error = Plan::from_json(&text).unwrap_err();
    assert_eq!(error, PlanError::NotStronglyConnected { node: 2 }, "{text}");
}

#[test]
fn a_forecast_that_the_plan_does_not_keep_is_told_field_by_field() {
    let text =
        edited("\"lambda_2\": 0.5", "\"lambda_2\": 0.25").replace("\"slots_to_1e-2\": 21", "\"slots_to_1e-2\": null");
    let plan = Plan::from_json(&text).unwrap();
    let differences: Vec<String> = plan.forecast_differences().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        differences,
        [
            "forecast.lambda_2: the file says 0.25, the plan gives 0.5",
            "forecast.slots_to_1e-2: the file says null, the plan gives 21",
        ]
    );
    assert_ne!(plan.hash(), path_plan().hash());
    assert_eq!(path_plan().forecast_differences().unwrap(), []);
}

#[test]
fn the_order_of_links_in_a_file_does_not_change_the_plan() {
    let text =
        edited("[0, 1, 0.5],\n        [1, 0, 0.3333333333333333]", "[1, 0, 0.3333333333333333],\n        [0, 1, 0.5]");
    let text = text.replace("[[1, 0], [1, 2]]", "[[1, 2], [1, 0]]").replace("[0, 1], [1, 2]\n", "[2, 1], [1, 0]\n");
    assert_eq!(Plan::from_json(&text).unwrap().hash(), path_plan().hash());
}

#[test]
fn peers_are_bound_once_and_kept_by_file_and_wire() {
    let mut plan = path_plan();
    let unbound = plan.hash();
    plan.bind("ana", "peer-a").unwrap();
    plan.bind(1, "peer-b").unwrap();
    plan.bind(1, "peer-b").unwrap();
    let twice = PlanError::PeerTwice { peer: "peer-a".to_owned(), first: 0, second: 2 };
    assert_eq!(plan.bind("cho", "peer-a"), Err(twice.clone()));
    assert_eq!(plan.bind("dan", "peer-d").unwrap_err().to_string(), "there is no node \"dan\" in the plan");
    assert_eq!(plan.bind(3, "peer-d").unwrap_err().to_string(), "there is no node 3 in the plan");
    assert_eq!(plan.bind(2, "a\nb"), Err(PlanError::UnusablePeer { node: 2 }));
    assert_ne!(plan.hash(), unbound);
    let nodes: Vec<_> = plan.nodes().collect();
    assert_eq!(nodes, [("ana", Some("peer-a")), ("ben", Some("peer-b")), ("cho", None)]);
    assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
    assert_eq!(Plan::from_postcard(&plan.to_postcard().unwrap()).unwrap(), plan);
    let text = plan.to_json().replace("\"cho\", \"peer\": null", "\"cho\", \"peer\": \"peer-a\"");
    assert_eq!(Plan::from_json(&text), Err(twice));
    assert_eq!(plan.node_of("peer-a"), Some(0));
}

#[test]
fn a_hash_prints_as_64_digits_and_is_read_back() {
    let hash = path_plan().hash();
    assert_eq!(hash.to_string().parse::<PlanHash>(), Ok(hash));
    assert_eq!(hash.to_string()[..8], hash.short());
    assert!("9f2e".parse::<PlanHash>().is_err());
}

#[test]
fn bytes_that_are_not_the_canonical_plan_are_refused() {
    let bytes = path_plan().to_postcard().unwrap();
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(Plan::from_postcard(&longer), Err(PlanError::NotCanonical));
    // A length encoded with more bytes than it needs.
    let mut padded = bytes;
    padded[0] |= 0x80;
    padded.insert(1, 0);
    assert_eq!(Plan::from_postcard(&padded), Err(PlanError::NotCanonical));
    assert!(matches!(Plan::from_postcard(&[]), Err(PlanError::Wire { .. })));
    assert!(matches!(Plan::from_postcard(&vec![0; (1 << 20) + 1]), Err(PlanError::TooLarge { .. })));
}

#[test]
fn a_length_that_promises_more_than_there_is_allocates_nothing() {
    let bytes = path_plan().to_postcard().unwrap();
    // The number of nodes follows the format, the method and two parameters.
    let nodes = bytes.windows(4).position(|window| window == [3, 3, b'a', b'n']).unwrap();
    let huge = [&bytes[..nodes], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], &bytes[nodes + 1..]].concat();
    assert!(matches!(Plan::from_postcard(&huge), Err(PlanError::Wire { .. })));
}

/// Exact averaging on the path 0 - 1 - 2: the leaves give all to the middle, which gives each its third back.
fn gather_and_scatter() -> PlanDraft {
    let link = |from, to, weight| WeightedLink { from, to, weight };
    let third = 1.0 / 3.0;
    PlanDraft {
        base: Topology::parse("a b\nb c\n").unwrap(),
        method: "by-hand".to_owned(),
        parameters: BTreeMap::from([("root".to_owned(), Parameter::Text("b".to_owned()))]),
        medium: Medium::Broadcast,
        steps: vec![
            StepDraft {
                keep: vec![0.0, 1.0, 0.0],
                links: vec![link(0, 1, 1.0), link(2, 1, 1.0)],
                slots: vec![vec![Link::new(0, 1)], vec![Link::new(2, 1)]],
            },
            StepDraft {
                keep: vec![1.0, third, 1.0],
                links: vec![link(1, 0, third), link(1, 2, third)],
                slots: vec![vec![Link::new(1, 0), Link::new(1, 2)]],
            },
        ],
        local_steps: 4,
        round_length: None,
        network: None,
    }
}

#[test]
fn a_period_of_two_steps_may_keep_nothing_and_average_exactly() {
    let plan = Plan::new(gather_and_scatter()).unwrap();
    let forecast = plan.forecast();
    assert_eq!((forecast.slots_per_period, forecast.links, forecast.payloads_per_period), (3, 4, 3));
    assert_eq!((forecast.lambda_2, forecast.slots_to_1e_2), (Some(0.0), Some(3)));
    assert_eq!((forecast.perron_min, forecast.perron_max), (Some(1.0), Some(1.0)));
    assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
    assert_eq!(Plan::from_postcard(&plan.to_postcard().unwrap()).unwrap(), plan);
}

#[test]
fn a_period_without_slots_is_a_plan_on_a_point_to_point_medium() {
    let mut draft = gather_and_scatter();
    draft.medium = Medium::PointToPoint;
    draft.steps.iter_mut().for_each(|step| step.slots.clear());
    let plan = Plan::new(draft).unwrap();
    let forecast = plan.forecast();
    assert_eq!((forecast.slots_per_period, forecast.payloads_per_period), (0, 4));
    assert_eq!((forecast.slots_per_neper, forecast.slots_to_1e_2, forecast.ln_objective_16), (None, None, None));
    assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
}

#[test]
fn a_period_whose_mass_goes_round_in_circles_is_refused() {
    // Two nodes that swap all they have: eigenvalues 1 and -1.
    let mut draft = gather_and_scatter();
    draft.base = Topology::parse("a b\n").unwrap();
    draft.steps = vec![StepDraft {
        keep: vec![0.0, 0.0],
        links: vec![WeightedLink { from: 0, to: 1, weight: 1.0 }, WeightedLink { from: 1, to: 0, weight: 1.0 }],
        slots: vec![vec![Link::new(0, 1)], vec![Link::new(1, 0)]],
    }];
    let message = Plan::new(draft.clone()).unwrap_err().to_string();
    assert!(message.contains("mass at node 0 only comes back to it every 2 periods"), "{message}");
    // After two of these steps the masses are back where they were, and never mix.
    draft.steps.push(draft.steps[0].clone());
    let message = Plan::new(draft).unwrap_err().to_string();
    assert!(message.contains("node 0 and mass that reaches node 1 never mix"), "{message}");
}

#[test]
fn drafts_beyond_the_limits_are_refused() {
    let with = |change: fn(&mut PlanDraft)| {
        let mut draft = gather_and_scatter();
        change(&mut draft);
        Plan::new(draft).unwrap_err()
    };
    assert_eq!(with(|draft| draft.steps.clear()), PlanError::NoSteps);
    assert!(matches!(with(|draft| draft.steps = vec![StepDraft::default(); 65_537]), PlanError::TooManySteps { .. }));
    assert!(matches!(with(|draft| draft.steps[0].keep[1] = f64::NAN), PlanError::KeepOutOfRange { node: 1, .. }));
    assert!(matches!(with(|draft| draft.steps[0].links[0].weight = f64::NAN), PlanError::WeightOutOfRange { .. }));
    let unusable = |draft: &mut PlanDraft| {
        draft.parameters.insert("rate".to_owned(), Parameter::Real(f64::INFINITY));
    };
    assert_eq!(with(unusable), PlanError::Description { what: "parameter \"rate\"".to_owned() });
}

#[test]
fn parameters_of_every_kind_keep_their_kind() {
    let mut draft = gather_and_scatter();
    let values = [Parameter::Flag(true), Parameter::Whole(6), Parameter::Real(6.0), Parameter::Text("six".to_owned())];
    draft.parameters = ["a", "b", "c", "d"].map(str::to_owned).into_iter().zip(values).collect();
    let plan = Plan::new(draft).unwrap();
    assert_eq!(Plan::from_json(&plan.to_json()).unwrap().parameters(), plan.parameters());
    assert_eq!(Plan::from_postcard(&plan.to_postcard().unwrap()).unwrap(), plan);
}

#[test]
fn a_parameter_of_minus_zero_is_zero_in_file_wire_and_hash() {
    let with = |number: f64| {
        let mut draft = gather_and_scatter();
        draft.parameters.insert("rate".to_owned(), Parameter::Real(number));
        Plan::new(draft).unwrap()
    };
    let (plus, minus) = (with(0.0), with(-0.0));
    assert_eq!((minus.hash(), minus.to_json()), (plus.hash(), plus.to_json()));
    assert_eq!(minus.to_postcard(), plus.to_postcard());
    assert_eq!(Plan::from_json(&minus.to_json()).unwrap().hash(), plus.hash());
    // The other encoding of the same plan is refused.
    let mut bytes = plus.to_postcard().unwrap();
    let name = bytes.windows(4).position(|window| window == b"rate").unwrap();
    let sign = name + 4 + 1 + 7;
    bytes[sign] ^= 0x80;
    assert_eq!(Plan::from_postcard(&bytes), Err(PlanError::NotCanonical));
}
