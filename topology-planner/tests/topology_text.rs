//! Texts that are read as topologies, and texts that are refused, with their messages.

#![allow(clippy::unwrap_used)]

use mingle_planner::{Topology, TopologyError};

fn refusal(text: &str) -> String {
    Topology::parse(text).unwrap_err().to_string()
}

fn generator_refusal(expression: &str) -> String {
    Topology::generate(expression).unwrap_err().to_string()
}

#[test]
fn an_edge_list_names_its_nodes() {
    let topology = Topology::parse("# huts\r\nana ben\r\n\r\nben\tcho # the ridge\r\nben,ana\n").unwrap();
    assert_eq!(topology.names(), ["ana", "ben", "cho"]);
    assert_eq!(topology.edges(), [(0, 1), (1, 2)]);
}

#[test]
fn numbers_in_an_edge_list_are_put_in_order() {
    let topology = Topology::parse("10 2\n2 1\n1 10\n").unwrap();
    assert_eq!(topology.names(), ["1", "2", "10"]);
    assert_eq!(topology.edges().len(), 3);
}

#[test]
fn arrows_are_fine_when_they_come_in_pairs() {
    assert_eq!(Topology::parse("a -> b\nb -> a\n").unwrap().edges(), [(0, 1)]);
    assert_eq!(
        refusal("a -> b\nb -> c\nc -> b\n"),
        "line 1: \"a\" reaches \"b\" but not the other way round: a topology needs every link in both directions; add the \
         reverse, or write the graph as an undirected one"
    );
}

#[test]
fn a_line_that_is_no_edge_is_refused_with_its_number() {
    assert_eq!(
        refusal("a b\n\nb c 0.5\n"),
        "line 3: \"b c 0.5\" is not an edge: write two node names, as in \"ana ben\", and behind them nothing, {attributes}, \
         or a number on every line"
    );
    assert!(refusal("a b\nlonely\n").starts_with("line 2:"));
    assert!(refusal("a -> -> b").starts_with("line 1:"));
}

#[test]
fn nothing_is_an_empty_topology() {
    for text in ["", " \n ", "# only a comment\n", r#"{"nodes": [], "edges": []}"#] {
        assert_eq!(Topology::parse(text), Err(TopologyError::Empty), "{text:?}");
    }
    assert_eq!(
        refusal(r#"{"nodes": ["solo"], "edges": []}"#),
        "node \"solo\" is alone: a topology needs at least two nodes"
    );
}

#[test]
fn a_self_loop_is_refused_with_its_node() {
    assert!(refusal("a b\nb b\n").starts_with("line 2: node \"b\" has an edge to itself"));
}

#[test]
fn the_parts_of_a_disconnected_topology_are_named() {
    assert_eq!(
        refusal("a b\nc d\nd e\n"),
        "the topology falls into 2 parts with no edge between them: {a, b}, {c, d, e}"
    );
    let scattered: String = (0..12).map(|k| format!("{} {}\n", 2 * k, 2 * k + 1)).collect();
    assert!(refusal(&scattered).ends_with("{0, 1}, {2, 3}, {4, 5}, {6, 7} and 8 more parts"));
}

#[test]
fn json_nodes_may_be_numbers_strings_or_objects() {
    let text = r#"{"name": "three", "nodes": [7, {"id": "x", "site": 3}, {"id": 9}],
                   "edges": [[7, "x"], ["x", 9]], "links": "ignored"}"#;
    let topology = Topology::parse(text).unwrap();
    assert_eq!(topology.names(), ["7", "x", "9"]);
    assert_eq!(topology.edges(), [(0, 1), (1, 2)]);
}

#[test]
fn labels_become_names_of_the_nodes_that_have_one_of_their_own() {
    let with = |last: &str| {
        format!(r#"{{"nodes": [{{"id": 0, "label": "Oslo"}}, {{"id": 1, "label": "{last}"}}], "edges": [[0, 1]]}}"#)
    };
    assert_eq!(Topology::parse(&with("Bergen")).unwrap().names(), ["Oslo", "Bergen"]);
    for not_its_own in ["Oslo", "None", " "] {
        let names = Topology::parse(&with(not_its_own)).unwrap().names().to_vec();
        assert_eq!(names, [if not_its_own == "Oslo" { "0" } else { "Oslo" }, "1"], "{not_its_own}");
    }
    // A label that is the id of another node.
    let crossed = r#"{"nodes": [{"id": 0, "label": "1"}, {"id": 1}], "edges": [[0, 1]]}"#;
    assert_eq!(Topology::parse(crossed).unwrap().names(), ["0", "1"]);
}

#[test]
fn positions_are_kept_when_every_node_has_one() {
    let with = |positions: &str| {
        let text = format!(r#"{{"nodes": [0, 1], "edges": [[0, 1]], "positions": {positions}}}"#);
        Topology::parse(&text).unwrap().positions().map(<[_]>::to_vec)
    };
    let places = Some(vec![[1.0, 2.0], [3.5, 4.0]]);
    assert_eq!(with("[[1, 2], [3.5, 4]]"), places);
    assert_eq!(with(r#"{"1": [3.5, 4], "0": [1, 2]}"#), places);
    assert_eq!(with(r#"{"0": [1, 2]}"#), None);
    assert_eq!(with(r#""unknown""#), None);
    assert_eq!(with("null"), None);
}

#[test]
fn a_json_graph_marked_directed_needs_both_directions() {
    let with = |edges: &str| format!(r#"{{"directed": true, "nodes": [0, 1], "edges": {edges}}}"#);
    assert!(Topology::parse(&with("[[0, 1], [1, 0]]")).is_ok());
    assert!(refusal(&with("[[0, 1]]")).starts_with("\"0\" reaches \"1\" but not the other way round"));
}

#[test]
fn broken_json_is_refused_with_line_and_column() {
    let error = Topology::parse("{\"nodes\": [0, 1],\n \"edges\": [[0, 1]").unwrap_err();
    assert!(matches!(error, TopologyError::Json { line: 2, column: 17, .. }), "{error:?}");
    assert!(refusal(r#"{"edges": []}"#).contains("no \"nodes\""));
    assert!(refusal(r#"{"nodes": [0, 1]}"#).contains("no \"edges\""));
    assert!(refusal(r#"{"nodes": [0, 1], "edges": [[0, 1, 0.5]]}"#).starts_with("line 1, column"));
    assert!(refusal("[1, 2]").starts_with("line 1, column"));
}

#[test]
fn unknown_and_repeated_nodes_are_named() {
    assert!(refusal(r#"{"nodes": [0, 1], "edges": [[0, 2]]}"#).starts_with("an edge names \"2\""));
    assert!(refusal(r#"{"nodes": [0, 1, 0], "edges": []}"#).starts_with("two nodes are called \"0\""));
}

#[test]
fn graphml_is_read_with_its_namespace_and_entities() {
    let text = r#"<?xml version="1.0" encoding="UTF-8"?>
        <graphml xmlns="http://graphml.graphdrawing.org/xmlns">
          <key id="d0" for="node" attr.name="label" attr.type="string"/>
          <graph id="G" edgedefault="undirected">
            <node id="a &amp; b"><data key="d0">first</data></node>
            <node id="c"/>
            <edge source="a &amp; b" target="c"><data key="d1">1.5</data></edge>
          </graph>
        </graphml>"#;
    let topology = Topology::parse(text).unwrap();
    assert_eq!(topology.names(), ["first", "c"]);
    assert_eq!(topology.edges(), [(0, 1)]);
}

#[test]
fn directed_graphml_is_refused_unless_every_link_has_its_reverse() {
    let with = |edges: &str| {
        format!(r#"<graphml><graph edgedefault="directed"><node id="a"/><node id="b"/>{edges}</graph></graphml>"#)
    };
    let one = r#"<edge source="a" target="b"/>"#;
    assert!(refusal(&with(one)).starts_with("line 1: \"a\" reaches \"b\" but not the other way round"));
    assert!(Topology::parse(&with(&format!(r#"{one}<edge source="b" target="a"/>"#))).is_ok());
    assert!(Topology::parse(&with(r#"<edge source="a" target="b" directed="false"/>"#)).is_ok());
}

#[test]
fn broken_graphml_is_refused_with_its_line() {
    for (text, message) in [
        ("<graphml></graphml>", "line 1: there is no <graph>: this XML is not GraphML"),
        ("<graphml>\n<graph>\n</graph></graphml>", "line 2: <graph> must say edgedefault"),
        ("<graphml>\n<graph edgedefault='undirected'>\n<node/>", "line 3: <node> has no id"),
        ("<graphml><graph edgedefault='undirected'><node id='a'/>\n<edge source='a'/>", "line 2: <edge> has no target"),
        ("<graphml><graph edgedefault='undirected'>\n</wrong>", "line 2:"),
        (
            "<graphml><graph edgedefault='undirected'><node id='a'/><node id='a'/></graph></graphml>",
            "line 1: two nodes are called \"a\"",
        ),
        (
            "<graphml><graph edgedefault='undirected'><node id='a'/><edge source='a' target='z'/></graph></graphml>",
            "line 1: an edge names \"z\"",
        ),
    ] {
        let refused = refusal(text);
        assert!(refused.starts_with(message), "{text:?}: {refused}");
    }
}

#[test]
fn graphml_that_ends_in_the_middle_is_refused() {
    let text = "<graphml><graph edgedefault='undirected'><node id='a'/><node id='b'/><edge source='a' target='b'/>\n";
    assert!(refusal(text).contains("before the last element is closed"), "{}", refusal(text));
}

#[test]
fn generators_make_the_graphs_they_are_named_after() {
    for (expression, nodes, edges) in [
        ("ring:n=8", 8, 8),
        ("grid:rows=3,cols=4", 12, 17),
        ("grid:rows=1,cols=2", 2, 1),
        ("star:n=6", 6, 5),
        ("complete:n=6", 6, 15),
        ("windmill:cliques=2,size=6", 11, 30),
        ("windmill:cliques=1,size=4", 4, 6),
        ("erdos-renyi:n=5,p=1", 5, 10),
        ("rg:n=7,r=1.5", 7, 21),
    ] {
        let topology = Topology::generate(expression).unwrap();
        assert_eq!((topology.node_count(), topology.edges().len()), (nodes, edges), "{expression}");
        assert!(Topology::looks_like_generator(expression));
    }
    assert_eq!(Topology::generate("grid:rows=2,cols=2").unwrap().edges(), [(0, 1), (0, 2), (1, 3), (2, 3)]);
}

#[test]
fn random_geometric_edges_join_exactly_the_points_within_the_radius() {
    let topology = Topology::generate("rg:n=33,r=0.5,seed=4").unwrap();
    let points = topology.positions().unwrap();
    for u in 0..33 {
        for v in u + 1..33 {
            let distance = (points[u][0] - points[v][0]).hypot(points[u][1] - points[v][1]);
            assert_eq!(topology.has_edge(u, v), distance <= 0.5, "{u} {v} at {distance}");
        }
    }
}

#[test]
fn random_graphs_are_pinned_by_their_seed() {
    let edges = |expression: &str| Topology::generate(expression).unwrap().edges().to_vec();
    assert_eq!(edges("erdos-renyi:n=6,p=0.5,seed=1"), edges("erdos-renyi:n=6,p=0.5,seed=1"));
    assert_ne!(edges("rg:n=20,r=0.4,seed=1"), edges("rg:n=20,r=0.4,seed=2"));
    assert_eq!(edges("rg:n=20,r=0.4"), edges("rg:seed=0, r=0.4, n=20"));
}

#[test]
fn a_random_graph_that_is_never_connected_names_the_parts_of_the_last_draw() {
    let message = generator_refusal("erdos-renyi:n=3,p=0,seed=5");
    assert!(message.starts_with("erdos-renyi:n=3,p=0,seed=5: none of 100 draws is connected"), "{message}");
    assert!(message.contains("3 parts: {node-0}, {node-1}, {node-2}"), "{message}");
}

#[test]
fn wrong_generator_expressions_say_what_is_wrong() {
    for (expression, message) in [
        ("torus:n=4", "there is no generator \"torus\": use one of rg, erdos-renyi, windmill"),
        ("ring:", "generator \"ring\": \"n\" is missing"),
        ("ring:n=2", "generator \"ring\": n=2 is too small: it must be at least 3"),
        ("ring:n=-3", "generator \"ring\": n=-3 is not a whole number"),
        ("ring:n=8,m=1", "generator \"ring\": there is no parameter \"m\""),
        ("ring:n=8,n=9", "generator \"ring\": \"n\" is given twice"),
        ("ring:8", "generator \"ring\": \"8\" is not of the form key=value"),
        ("rg:n=9,r=NaN", "generator \"rg\": r=NaN is out of range"),
        ("erdos-renyi:n=9,p=1.5", "generator \"erdos-renyi\": p=1.5 is out of range: it must lie between 0 and 1"),
        ("ring:n=1048577", "generator \"ring\": 1048577 nodes are too many"),
        (
            "windmill:cliques=99999999999,size=99999999999",
            "generator \"windmill\": 18446744073709551615 nodes are too many",
        ),
        ("complete:n=10000", "the topology has 49995000 edges or more"),
    ] {
        let refused = generator_refusal(expression);
        assert!(refused.starts_with(message), "{expression}: {refused}");
    }
}

#[test]
fn file_names_do_not_look_like_generators() {
    for text in ["ring.json", "./ring", "C:\\graphs\\ring.txt", "ring", "plans/a=b.json"] {
        assert!(!Topology::looks_like_generator(text), "{text}");
    }
    assert!(Topology::looks_like_generator("torus:n=4"), "a misspelt generator is better told than opened");
}

#[test]
fn unusable_names_are_refused() {
    let named = |name: String| Topology::new(vec!["a".to_owned(), name], &[(0, 1)]);
    assert_eq!(named(String::new()), Err(TopologyError::UnusableName { node: 1 }));
    assert_eq!(named("x\u{1b}[2J".to_owned()), Err(TopologyError::UnusableName { node: 1 }));
    assert_eq!(named("x".repeat(257)), Err(TopologyError::UnusableName { node: 1 }));
    assert!(matches!(named("a".to_owned()), Err(TopologyError::DuplicateName { .. })));
}

#[test]
fn an_interference_graph_must_hold_every_edge_of_the_topology() {
    let path = Topology::parse("a b\nb c\n").unwrap();
    let message = path.clone().with_interference(&[(0, 1), (0, 2)]).unwrap_err().to_string();
    assert!(message.starts_with("the interference graph lacks the edge \"b\" - \"c\""), "{message}");
    assert!(path.with_interference(&[(0, 1), (0, 2), (2, 1)]).unwrap().interferes(2, 0));
}

#[test]
fn what_is_written_is_read_back_as_the_same_topology() {
    let expressions = ["rg:n=14,r=0.5,seed=8", "ring:n=3", "windmill:cliques=3,size=4", "star:n=2"];
    let topologies = expressions.map(|expression| Topology::generate(expression).unwrap());
    let hostile = ["</node>", "a\"b'c", "&lt;", "ünïcode ☃", "12", "0", "x, y # z"].map(str::to_owned).to_vec();
    let hostile = Topology::new(hostile, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]).unwrap();
    let wider = Topology::generate("grid:rows=1,cols=4").unwrap();
    let wider = wider.with_interference(&[(0, 1), (1, 2), (2, 3), (0, 2), (1, 3)]).unwrap();
    for topology in topologies.iter().chain([&hostile, &wider]) {
        assert_eq!(Topology::parse(&topology.to_json()).as_ref(), Ok(topology));
        let plain = Topology::new(topology.names().to_vec(), topology.edges()).unwrap();
        let plain = match topology.positions() {
            Some(places) => plain.with_positions(places.to_vec()),
            None => plain,
        };
        assert_eq!(Topology::parse(&topology.to_graphml()).unwrap(), plain);
    }
    for topology in &topologies {
        let read = Topology::parse(&topology.to_edge_list().unwrap()).unwrap();
        let named = |topology: &Topology| -> std::collections::BTreeSet<[String; 2]> {
            let names = topology.names();
            let ends = topology.edges().iter().map(|&(u, v)| [names[u].clone(), names[v].clone()]);
            ends.map(|mut ends| {
                ends.sort();
                ends
            })
            .collect()
        };
        assert_eq!(named(&read), named(topology));
    }
    assert_eq!(hostile.to_edge_list().unwrap_err().name, "</node>");
}

#[test]
fn a_node_list_that_would_start_another_format_is_not_written_as_an_edge_list() {
    for name in ["{a", "[a", "<a", "->", "\u{feff}a"] {
        let topology = Topology::new(vec![name.to_owned(), "b".to_owned()], &[(0, 1)]).unwrap();
        assert_eq!(topology.to_edge_list().unwrap_err().name, name);
    }
}
