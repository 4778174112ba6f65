//! Training of clients: the modes of sharing, the restoring of states, and the gradient.
#![allow(clippy::unwrap_used)]

use mingle_graphs::{
    CollaborationMode, CollaborationOptions, Graph, NodeClient, NodeData, NodeOptions, NodeSplit, Overlap, Sharing,
    deal_out, two_characters,
};
use mingle_models::{Device, DeviceName};

mod federation;

use federation::Federation;

fn cpu() -> Device {
    DeviceName::Cpu.open().unwrap()
}

fn clients(count: usize) -> Vec<NodeData> {
    let data = two_characters(1);
    deal_out(data.graph(), count, Overlap::Disjoint, 1).unwrap().iter().map(|nodes| data.induced(nodes)).collect()
}

fn options() -> NodeOptions {
    NodeOptions { orders: 3, directions: 2, hidden: 16, layers: 2, tau: 0.5, ..NodeOptions::default() }
}

#[test]
fn clients_learn_from_their_links_what_features_alone_do_not_tell() {
    let data = clients(8);
    let mut federation = Federation::new(&options(), &data, Sharing::Local, (1, 2), &cpu());
    for _ in 0..30 {
        federation.round();
    }
    let accuracy = federation.test().unwrap();
    assert!(accuracy > 0.4, "{accuracy}: a quarter is chance");
}

#[test]
fn equal_runs_have_equal_bits_and_modes_differ() {
    let data = clients(4);
    let run = |sharing| {
        let mut federation = Federation::new(&options(), &data, sharing, (1, 1), &cpu());
        (0..3).for_each(|_| federation.round());
        federation.parameters().clone()
    };
    let angle = run(Sharing::Collaboration(CollaborationMode::Angle));
    assert_eq!(angle, run(Sharing::Collaboration(CollaborationMode::Angle)));
    assert_ne!(angle, run(Sharing::Local));
    assert_ne!(angle, run(Sharing::Average));
}

#[test]
fn angles_put_weight_on_clients_of_the_same_character() {
    let data = clients(8);
    let options =
        NodeOptions { collaboration: CollaborationOptions { most_weights: 8, ..Default::default() }, ..options() };
    let sharing = Sharing::Collaboration(CollaborationMode::Angle);
    let federation = Federation::new(&options, &data, sharing, (1, 1), &cpu());
    for (client, row) in federation.graph().all().iter().enumerate() {
        assert!(
            row[client] >= row.iter().copied().fold(0.0, f64::max) - 1e-9,
            "its own weight is the largest: {row:?}"
        );
    }
}

#[test]
fn a_client_goes_on_bit_for_bit_from_its_state_and_refuses_others() {
    let data = &clients(4)[0];
    let split = NodeSplit::random(data.labels(), 1);
    let new = || NodeClient::new(options(), data, &split, cpu()).unwrap();
    let (mut one, mut other) = (new(), new());
    let begin = one.shape().initial_parameters(1);
    let middle = one.train(&begin, 3).unwrap();
    let state = one.state().unwrap();
    let end = one.train(&middle, 3).unwrap();
    other.restore(&state).unwrap();
    assert_eq!(other.train(&middle, 3).unwrap(), end);
    assert_ne!(new().train(&middle, 3).unwrap(), end, "moments and masks matter");
    assert!(other.restore(&[1, 2, 3]).is_err());
    assert!(other.restore(&[&7_u64.to_le_bytes()[..], &u64::MAX.to_le_bytes()[..], &[9; 40]].concat()).is_err());
    assert!(other.train(&begin[1..], 1).is_err());
}

#[test]
fn clients_with_one_class_or_features_of_zero_learn_and_those_without_labels_say_so() {
    let data = two_characters(1);
    let ones: Vec<u32> = (0..200).filter(|node| node % 4 == 1).collect();
    let one_class = data.induced(&ones);
    let split = NodeSplit::random(one_class.labels(), 1);
    let mut client = NodeClient::new(options(), &one_class, &split, cpu()).unwrap();
    assert!(client.notes().iter().any(|note| note.contains("the same class")));
    let parameters = client.train(&client.shape().initial_parameters(1), 20).unwrap();
    assert_eq!(client.evaluate(&parameters).unwrap().test.accuracy, Some(1.0));
    let (nodes, features) = (one_class.node_count(), one_class.feature_count());
    let labels: Vec<Option<u16>> = (0..nodes).map(|node| Some((node % 2) as u16)).collect();
    let links = Graph::from_edges(nodes, one_class.graph().edges().map(|(a, b)| (a as u32, b as u32))).unwrap();
    let zero = NodeData::new(links, vec![0.0; nodes * features], features, labels, None).unwrap();
    let mut client = NodeClient::new(options(), &zero, &NodeSplit::random(zero.labels(), 1), cpu()).unwrap();
    let notes = client.notes().join("\n");
    assert!(notes.contains(&format!("{features} columns of features are zero")), "{notes}");
    assert!(notes.contains("directions of signatures are not there"), "{notes}");
    let parameters = client.train(&client.shape().initial_parameters(1), 5).unwrap();
    assert!(parameters.iter().all(|value| value.is_finite()));
    assert!(client.evaluate(&parameters).unwrap().test.accuracy.unwrap() < 0.8, "there is nothing to tell from");
    let nothing = NodeClient::new(options(), &one_class, &NodeSplit::default(), cpu());
    assert!(nothing.err().unwrap().to_string().contains("no node with a label"));
}
