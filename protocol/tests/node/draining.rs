//! The end of a node's part beside neighbours that do not close their links.

use super::progress::{greet, says};
use super::*;

const DEADLINE: Duration = Duration::from_secs(30);

/// The second in which a node that was asked to stop has drained, where its only neighbour never closes its links, and
/// answers once a second or not at all.
fn drained_after(answers: bool) -> (u64, Vec<NodeEvent>) {
    let mut config = config(ME, 1);
    config.drain_deadline = DEADLINE;
    let mut node = Node::new(config).unwrap();
    node.handle(AT, Input::Start);
    greet(&mut node, PEER);
    let mut events = reports(&node.handle(AT, Input::Stop));
    for second in 1..3_600 {
        let now = AT + Duration::from_secs(second);
        let input = if answers { says(&node, PEER, 0) } else { Input::Tick };
        let effects = [node.handle(now, input), node.handle(now, Input::Tick)].concat();
        events.extend(reports(&effects));
        if effects.contains(&Effect::Drained) {
            return (second, events);
        }
    }
    panic!("it never drained: {events:?}");
}

#[test]
fn a_neighbour_that_never_closes_its_links_is_given_up_later_if_it_answers() {
    for (answers, expected) in [(false, DEADLINE.as_secs()), (true, 3 * DEADLINE.as_secs())] {
        let (second, events) = drained_after(answers);
        assert_eq!(second, expected, "answers: {answers}: {events:?}");
        let gave_up = |event: &NodeEvent| matches!(event, NodeEvent::DrainGaveUp { undelivered } if undelivered.iter().any(|(peer, _)| *peer == PEER));
        assert!(events.iter().any(gave_up), "answers: {answers}: {events:?}");
    }
}
