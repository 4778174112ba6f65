//! Differences between plans by `Plan::difference`: correct, and complete.

#![allow(clippy::unwrap_used)]

use mingle_planner::{
    DesignOptions, ExtraEdges, Link, Medium, Method, Plan, Topology, design,
    plan::{Parameter, PlanDifference, PlanDraft, StepDraft, WeightedLink},
};

fn topology() -> Topology {
    Topology::generate("rg:n=10,r=0.6,seed=4").unwrap()
}

fn made(method: Method, seed: u64) -> Plan {
    let options = DesignOptions { seed, effort: 1, ..DesignOptions::default() };
    design(&topology(), method, &options).unwrap()
}

/// A ring of four nodes, with every value set by the test.
fn ring() -> PlanDraft {
    let base =
        Topology::new(["a", "b", "c", "d"].map(str::to_owned).to_vec(), &[(0, 1), (1, 2), (2, 3), (0, 3)]).unwrap();
    let around = |node: usize| Link::new(node, (node + 1) % 4);
    PlanDraft {
        base,
        method: "by hand".to_owned(),
        parameters: [("seed".to_owned(), Parameter::Whole(1))].into(),
        medium: Medium::Broadcast,
        network: None,
        steps: vec![StepDraft {
            keep: vec![0.5; 4],
            links: (0..4).map(|node| WeightedLink::new(around(node), 0.5)).collect(),
            slots: (0..4).map(|node| vec![around(node)]).collect(),
        }],
        local_steps: 1,
        round_length: None,
    }
}

fn difference(change: impl Fn(&mut PlanDraft)) -> PlanDifference {
    let mut draft = ring();
    change(&mut draft);
    Plan::new(ring()).unwrap().difference(&Plan::new(draft).unwrap())
}

#[test]
fn plans_differ_exactly_when_their_hashes_do() {
    let plans: Vec<Plan> = [Method::NguyenHe, Method::ExactAverage, Method::DPsgd]
        .into_iter()
        .flat_map(|method| [made(method, 0), made(method, 0), made(method, 5)])
        .collect();
    for a in &plans {
        for b in &plans {
            assert_eq!(a.difference(b).is_empty(), a.hash() == b.hash(), "{} and {}", a.method(), b.method());
        }
    }
}

#[test]
fn what_is_added_one_way_is_removed_the_other_way() {
    let (a, b) = (made(Method::NguyenHe, 0), made(Method::ExactAverage, 3));
    let (forth, back) = (a.difference(&b), b.difference(&a));
    assert_eq!(forth.steps.len(), back.steps.len());
    assert!(!forth.steps.is_empty());
    for (there, here) in forth.steps.iter().zip(&back.steps) {
        assert_eq!((&there.links.added, &there.links.removed), (&here.links.removed, &here.links.added));
        assert_eq!(there.moved, here.moved);
    }
}

#[test]
fn the_links_of_a_difference_turn_the_first_plan_into_the_second() {
    let (a, b) = (made(Method::NguyenHe, 0), made(Method::NguyenHe, 7));
    let names = topology().names().to_vec();
    let links = |plan: &Plan| -> Vec<[String; 2]> {
        plan.steps()[0].links().iter().map(|link| [names[link.from].clone(), names[link.to].clone()]).collect()
    };
    let difference = a.difference(&b);
    let step = &difference.steps[0];
    let mut turned = links(&a);
    turned.retain(|[from, to]| !step.links.removed.iter().any(|link| link.from == *from && link.to == *to));
    turned.extend(step.links.added.iter().map(|link| [link.from.clone(), link.to.clone()]));
    let mut expected = links(&b);
    turned.sort();
    expected.sort();
    assert_eq!(turned, expected);
}

#[test]
fn each_kind_of_change_is_told_as_what_it_is() {
    assert!(difference(|_| {}).is_empty());

    let settings = difference(|draft| {
        draft.local_steps = 4;
        draft.parameters.insert("seed".to_owned(), Parameter::Text("1".to_owned()));
    });
    let told: Vec<_> =
        settings.settings.iter().map(|change| (change.field.as_str(), change.after.as_deref())).collect();
    assert_eq!(told, [("local_steps", Some("4")), ("parameters.seed", Some("\"1\""))]);
    assert!(settings.steps.is_empty() && settings.forecast.is_empty());

    let weights = difference(|draft| {
        draft.steps[0].links[2].weight = 0.25;
        draft.steps[0].keep[2] = 0.75;
    });
    let step = &weights.steps[0];
    assert_eq!((step.reweighted.len(), step.keep.len(), step.moved.len()), (1, 1, 0));
    assert_eq!((step.reweighted[0].link.from.as_str(), step.reweighted[0].after), ("c", 0.25));
    assert_eq!((step.keep[0].node.as_str(), step.keep[0].before, step.keep[0].after), ("c", 0.5, 0.75));

    let slots = difference(|draft| draft.steps[0].slots.swap(1, 3));
    assert_eq!(slots.steps[0].moved.len(), 2);
    assert!(slots.steps[0].links.is_empty() && slots.steps[0].reweighted.is_empty());

    let base = difference(|draft| {
        let names = draft.base.names().to_vec();
        draft.base = Topology::new(names, &[(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]).unwrap();
    });
    assert_eq!(base.base.added, [["a".to_owned(), "c".to_owned()]]);
    assert!(base.base.removed.is_empty() && base.steps.is_empty());

    let step = difference(|draft| draft.steps.push(draft.steps[0].clone()));
    assert_eq!((step.steps.len(), step.steps[0].step, step.steps[0].links.added.len()), (1, 1, 4));
    assert_eq!(step.steps[0].slots, [0, 4]);
}

#[test]
fn a_peer_that_is_bound_is_a_difference() {
    let plan = Plan::new(ring()).unwrap();
    let mut bound = plan.clone();
    bound.bind("b", "12D3KooWben").unwrap();
    let difference = plan.difference(&bound);
    assert_eq!((difference.peers[0].field.as_str(), difference.peers[0].before.as_deref()), ("b", None));
    assert_eq!(difference.peers[0].after.as_deref(), Some("12D3KooWben"));
}

#[test]
fn nodes_are_matched_by_name_not_by_number() {
    let options = DesignOptions { extra_edges: ExtraEdges::Exactly(0), ..DesignOptions::default() };
    let plan = |text: &str| design(&Topology::parse(text).unwrap(), Method::DPsgd, &options);
    assert!(plan("ana ben\nben cho\n").is_err(), "d-psgd takes no extra edges");
    let plan = |text: &str| design(&Topology::parse(text).unwrap(), Method::DPsgd, &DesignOptions::default()).unwrap();
    let (a, b) = (plan("ana ben\nben cho\n"), plan("cho ben\nben ana\n"));
    let difference = a.difference(&b);
    assert!(difference.nodes.is_empty() && difference.base.is_empty());
    assert!(difference.steps.iter().all(|step| step.links.is_empty()));
    assert_eq!(difference.settings[0].field, "node 0");
    assert_eq!(difference.settings[0].after.as_deref(), Some("cho"));
}
