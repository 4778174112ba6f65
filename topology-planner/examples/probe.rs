#![allow(missing_docs, clippy::unwrap_used)]
use mingle_planner::{DesignOptions, Method, Topology, design};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let method: Method = args[0].parse().unwrap();
    let effort: u32 = args[1].parse().unwrap();
    for spec in &args[2..] {
        let t = if Topology::looks_like_generator(spec) {
            Topology::generate(spec).unwrap()
        } else {
            let text = std::fs::read_to_string(spec).unwrap();
            let v: serde_json::Value = serde_json::from_str(&text).unwrap();
            if v.get("cases").is_some() || v["base"].is_array() {
                let edges: Vec<(usize, usize)> = serde_json::from_value(v["base"].clone())
                    .or_else(|_| serde_json::from_value(v["base"]["edges"].clone()))
                    .unwrap();
                let n = edges.iter().map(|e| e.0.max(e.1)).max().unwrap() + 1;
                Topology::new((0..n).map(|i| i.to_string()).collect(), &edges).unwrap()
            } else {
                Topology::parse(&text).unwrap()
            }
        };
        let start = std::time::Instant::now();
        match design(&t, method, &DesignOptions { effort, ..DesignOptions::default() }) {
            Ok(p) => {
                let f = p.forecast();
                println!(
                    "{:60} n {:5} m {:6} steps {:3} slots {:4} links {:5} l2 {:?} spn {:?} to1e-2 {:?} pmin {:?} D+ {} diam {} {:?} {:?}",
                    spec.rsplit('/').next().unwrap(),
                    t.node_count(),
                    t.edges().len(),
                    p.steps().len(),
                    f.slots_per_period,
                    f.links,
                    f.lambda_2,
                    f.slots_per_neper,
                    f.slots_to_1e_2,
                    f.perron_min,
                    f.max_out_degree,
                    f.diameter,
                    p.parameters(),
                    start.elapsed()
                );
            }
            Err(e) => println!("{spec} ERROR {e} {:?}", start.elapsed()),
        }
    }
}
