//! Pictures and exports: not their looks, but that all of a plan is in them, once, and nothing that would break them.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use mingle_planner::{
    DesignOptions, Link, Medium, Method, Plan, Topology, design,
    draw::{self, DrawError, NodePlacement},
};
use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event},
};

/// Names that would break out of XML, DOT or a layout that trusts its input.
const HOSTILE: [&str; 7] =
    ["</text><script>", "a\"b'c", "back\\slash", "&amp;", "ünïcode ☃ עברית", "]]>", "x -> y [color=red]"];

fn plan(expression: &str, method: Method, medium: Medium) -> Option<Plan> {
    let topology = Topology::generate(expression).unwrap();
    let options = DesignOptions { medium, effort: 1, ..DesignOptions::default() };
    design(&topology, method, &options).ok()
}

/// A plan for each method on small topologies, on both media; those that a method refuses are left out.
static PLANS: LazyLock<Vec<Plan>> = LazyLock::new(|| {
    let mut plans = Vec::new();
    for method in Method::ALL {
        for expression in ["rg:n=12,r=0.5,seed=3", "complete:n=8", "ring:n=9", "star:n=2"] {
            for medium in [Medium::Broadcast, Medium::PointToPoint] {
                plans.extend(plan(expression, method, medium));
            }
        }
    }
    assert!(plans.len() > 40, "only {} plans", plans.len());
    plans
});

fn hostile_plan() -> Plan {
    let names = HOSTILE.map(str::to_owned).to_vec();
    let ring: Vec<(usize, usize)> = (0..names.len()).map(|node| (node, (node + 1) % HOSTILE.len())).collect();
    let topology = Topology::new(names, &ring).unwrap();
    design(&topology, Method::NguyenHe, &DesignOptions::default()).unwrap()
}

fn links(plan: &Plan) -> BTreeSet<Link> {
    plan.steps().iter().flat_map(|step| step.links()).map(|link| link.link()).collect()
}

fn attributes(element: &BytesStart<'_>) -> BTreeMap<String, String> {
    let pairs = element.attributes().map(|attribute| {
        let attribute = attribute.unwrap();
        let key = String::from_utf8(attribute.key.as_ref().to_vec()).unwrap();
        (key, attribute.normalized_value(XmlVersion::Implicit1_0).unwrap().into_owned())
    });
    pairs.collect()
}

/// The name of an element, its attributes, and the text directly inside it.
type Element = (String, BTreeMap<String, String>, String);

/// Every element of a well-formed document, with its attributes and the text directly inside it.
fn elements(xml: &str) -> Vec<Element> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let mut found: Vec<Element> = Vec::new();
    let mut open = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(element) => {
                open.push(found.len());
                let name = String::from_utf8(element.name().as_ref().to_vec()).unwrap();
                found.push((name, attributes(&element), String::new()));
            }
            Event::Empty(element) => {
                let name = String::from_utf8(element.name().as_ref().to_vec()).unwrap();
                found.push((name, attributes(&element), String::new()));
            }
            Event::Text(text) => {
                if let Some(&at) = open.last() {
                    found[at].2.push_str(&text.decode().unwrap());
                }
            }
            Event::GeneralRef(reference) => {
                let name = reference.decode().unwrap();
                let character = match &*name {
                    "lt" => "<",
                    "gt" => ">",
                    "amp" => "&",
                    "quot" => "\"",
                    "#39" => "'",
                    other => panic!("&{other};"),
                };
                found[*open.last().unwrap()].2.push_str(character);
            }
            Event::End(_) => drop(open.pop()),
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(open.is_empty(), "unclosed elements");
    found
}

/// The links of the large picture, each as often as it is drawn.
fn drawn_links(elements: &[Element]) -> Vec<Link> {
    let number = |word: &str| word[1..].parse::<usize>().unwrap();
    let links = elements.iter().filter(|(name, ..)| name == "path").filter_map(|(_, attributes, _)| {
        let class = attributes.get("class")?;
        let [_, from, to] = class.split(' ').collect::<Vec<_>>()[..] else { return None };
        Some(Link::new(number(from), number(to)))
    });
    links.collect()
}

/// All coordinates of the paths, in pairs.
fn coordinates(elements: &[Element]) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    for (_, attributes, _) in elements.iter().filter(|(name, ..)| name == "path") {
        let words = attributes["d"].replace(['M', 'L', 'Q', 'Z'], " ").replace("h0", " ");
        for pair in words.split_whitespace().filter(|word| word.contains(',')) {
            let (x, y) = pair.split_once(',').unwrap();
            let whole = |text: &str| text.split('h').next().unwrap().parse::<f64>().unwrap();
            found.push((whole(x), whole(y)));
        }
    }
    found
}

fn check_svg(plan: &Plan, layout: &NodePlacement<'_>) {
    let svg = draw::svg(plan, layout).unwrap();
    let context = format!("{} on {} nodes", plan.method(), plan.node_count());
    let all = elements(&svg);
    let drawn = drawn_links(&all);
    assert_eq!(drawn.len(), drawn.iter().collect::<BTreeSet<_>>().len(), "{context}: a link is drawn twice");
    assert_eq!(drawn.into_iter().collect::<BTreeSet<_>>(), links(plan), "{context}");

    let titles: Vec<&str> = all.iter().filter(|(name, ..)| name == "title").map(|(.., text)| text.as_str()).collect();
    for (name, _) in plan.nodes() {
        assert!(titles.iter().any(|title| title.starts_with(&format!("{name}, "))), "{context}: {name} is missing");
    }
    for word in ["NaN", "inf", "undefined"] {
        assert!(!svg.contains(word), "{context}: {word}");
    }
    let page = &all[0].1;
    let [width, height] = ["width", "height"].map(|side| page[side].parse::<f64>().unwrap());
    for (x, y) in coordinates(&all) {
        assert!((0.0..=width).contains(&x) && (0.0..=height).contains(&y), "{context}: ({x}, {y}) is off the page");
    }
    assert_eq!(draw::svg(plan, layout).unwrap(), svg, "{context}: drawn again, it is another picture");
}

#[test]
fn every_plan_is_drawn_whole_on_a_circle() {
    for plan in PLANS.iter() {
        check_svg(plan, &NodePlacement::Circle);
    }
}

#[test]
fn every_plan_is_drawn_whole_at_given_places_whatever_they_are() {
    for plan in PLANS.iter() {
        let nodes = plan.node_count();
        let spread: Vec<[f64; 2]> = (0..nodes).map(|node| [node as f64 * 7.3 % 5.0, node as f64 * 3.1 % 4.0]).collect();
        check_svg(plan, &NodePlacement::Positions(&spread));
        check_svg(plan, &NodePlacement::Positions(&vec![[1.0, 1.0]; nodes]));
        let line: Vec<[f64; 2]> = (0..nodes).map(|node| [0.0, node as f64 * 1e300]).collect();
        check_svg(plan, &NodePlacement::Positions(&line));
    }
}

#[test]
fn names_that_are_markup_are_drawn_as_names() {
    let plan = hostile_plan();
    check_svg(&plan, &NodePlacement::Circle);
    check_svg(&plan, &NodePlacement::Positions(&[[0.0, 0.0]; HOSTILE.len()]));
    let svg = draw::svg(&plan, &NodePlacement::Circle).unwrap();
    assert!(elements(&svg).iter().all(|(name, ..)| name != "script"));
}

#[test]
fn the_legend_counts_every_link_once() {
    let plan = plan("rg:n=20,r=0.4,seed=1", Method::NguyenHe, Medium::Broadcast).unwrap();
    let svg = draw::svg(&plan, &NodePlacement::Circle).unwrap();
    let texts = |rows: &str| -> Vec<usize> {
        let all = elements(rows);
        let numbers = all.iter().filter(|(name, ..)| name == "text").filter_map(|(.., text)| text.parse().ok());
        numbers.collect()
    };
    let rows: Vec<&str> = svg.split("<g class=\"key ").skip(1).map(|row| row.split("</g>").next().unwrap()).collect();
    assert_eq!(rows.len(), plan.forecast().slots_per_period);
    for (slot, row) in rows.iter().enumerate() {
        let row = format!("<g class=\"{row}</g>");
        assert_eq!(texts(&row), [slot, plan.steps()[0].slots()[slot].len()], "slot {slot}");
    }
}

#[test]
fn a_period_that_repeats_its_links_shows_how_often() {
    let plan = plan("rg:n=12,r=0.5,seed=3", Method::BassHeuristic, Medium::Broadcast).unwrap();
    let svg = draw::svg(&plan, &NodePlacement::Circle).unwrap();
    assert!(svg.contains("Share of steps") && svg.contains(" %</text>"));
    assert!(svg.contains(&format!("The first 12 of {} steps", plan.steps().len())));
}

#[test]
fn thousands_of_links_are_refused_with_what_is_possible() {
    let topology = Topology::generate("complete:n=150").unwrap();
    let plan = design(
        &topology,
        Method::SgpUniform,
        &DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() },
    )
    .unwrap();
    let error = draw::svg(&plan, &NodePlacement::Circle).unwrap_err();
    assert_eq!(error, DrawError::TooLarge { nodes: 150, links: 150 * 149 });
    assert!(error.to_string().contains("GraphML"));
    assert_eq!(draw::dot(&plan, &NodePlacement::Circle).matches(" -> ").count(), 150 * 149);
}

#[test]
fn places_that_do_not_fit_are_refused() {
    let plan = plan("ring:n=4", Method::NguyenHe, Medium::Broadcast).unwrap();
    let too_few = [[0.0, 0.0]; 3];
    let broken = [[0.0, 0.0], [1.0, f64::NAN], [2.0, 0.0], [3.0, 0.0]];
    assert_eq!(
        draw::svg(&plan, &NodePlacement::Positions(&too_few)),
        Err(DrawError::PositionCount { positions: 3, nodes: 4 })
    );
    assert_eq!(draw::svg(&plan, &NodePlacement::Positions(&broken)), Err(DrawError::PositionNotFinite { node: 1 }));
}

#[test]
fn graphml_holds_every_link_of_every_step_with_its_weight_to_the_bit() {
    for plan in PLANS.iter().chain([&hostile_plan()]) {
        let all = elements(&draw::graphml(plan, &NodePlacement::Circle));
        let mut labels = Vec::new();
        let mut edges: Vec<[String; 2]> = Vec::new();
        let mut data: Vec<BTreeMap<String, String>> = Vec::new();
        for (name, attributes, text) in all {
            match (name.as_str(), attributes.get("key").map(String::as_str)) {
                ("edge", _) => {
                    edges.push([attributes["source"].clone(), attributes["target"].clone()]);
                    data.push(BTreeMap::new());
                }
                ("data", Some("label")) => labels.push(text),
                ("data", Some(key @ ("step" | "slot" | "weight"))) => {
                    data.last_mut().unwrap().insert(key.to_owned(), text);
                }
                _ => {}
            }
        }
        assert_eq!(labels, plan.base().names());
        let expected: Vec<(usize, Link, u64)> = plan
            .steps()
            .iter()
            .enumerate()
            .flat_map(|(step, content)| {
                content.links().iter().map(move |link| (step, link.link(), link.weight.to_bits()))
            })
            .collect();
        let node = |id: &String| id[1..].parse::<usize>().unwrap();
        let read: Vec<(usize, Link, u64)> = edges
            .iter()
            .zip(&data)
            .map(|([from, to], data)| {
                let weight: f64 = data["weight"].parse().unwrap();
                (data["step"].parse().unwrap(), Link::new(node(from), node(to)), weight.to_bits())
            })
            .collect();
        assert_eq!(read, expected);
        for (step, link, data) in read.iter().zip(&data).map(|((step, link, _), data)| (step, link, data)) {
            let slots = plan.steps()[*step].slots();
            let slot = slots.iter().position(|slot| slot.contains(link)).map(|slot| slot.to_string());
            assert_eq!(data.get("slot"), slot.as_ref(), "{link}");
        }
    }
}

#[test]
fn dot_quotes_names_and_has_one_edge_for_each_link_of_each_step() {
    for plan in PLANS.iter().chain([&hostile_plan()]) {
        let dot = draw::dot(plan, &NodePlacement::Circle);
        let edges = dot.lines().filter(|line| line.contains(" -> ") && line.contains("weight=")).count();
        assert_eq!(edges, plan.steps().iter().map(|step| step.links().len()).sum::<usize>());
        for (node, (name, _)) in plan.nodes().enumerate() {
            let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
            assert!(dot.contains(&format!("  {node} [label=\"{quoted}\"")), "{name}");
        }
    }
}
