//! A plan as an SVG: header, links and nodes, legend, and the first steps of a longer period.

use std::fmt::Write as _;

use mingle_plot::document::{Anchor, At, Coordinate, Point, SvgDocument, escaped, shortened, text_width};

use super::{
    DrawError, MAX_DRAWN_LINKS, MAX_DRAWN_NODES, NodePlacement,
    labels::{self, Names, NodeLabel},
    layout::{Placement, difference},
    legend::{self, LEAST_NUMBERED, LegendKey},
    shape::{BandShape, bowed, outline},
    small_multiples::SmallMultiples,
    union::{DrawnLink, Union},
};
use crate::{
    digraph::Link,
    plan::{Medium, Plan},
};

const MARGIN: f64 = 28.0;
const HEADER: f64 = 78.0;
const COLUMN_GAP: f64 = 36.0;

/// Bow of links in both directions, as a share of their length.
const BOW: f64 = 0.045;

/// Bend of links towards the centre of a circle, as a share of the way.
const INWARD_BEND: f64 = 0.3;

/// The largest bend towards the centre, as a share of the link's length.
const MOST_BEND: f64 = 0.5;

/// Unused edges of the base graph are left out of the background beyond this many.
const MOST_BACKGROUND_EDGES: usize = 1_500;

/// Up to this many nodes, pointing at a node highlights its links.
const MOST_POINTED_NODES: usize = 300;

const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#334155}\
.title{font-size:20px;font-weight:600;fill:#0f172a}.caption{font-size:13px}.small{font-size:11px}\
.heading{font-size:11px;font-weight:600;fill:#0f172a}\
.card{fill:#fff;stroke:#e2e8f0}.edge{fill:none;stroke:#e2e8f0}.sample{fill:#64748b}\
.node{fill:#1e293b;stroke:#fff;stroke-width:1.4}.inside{fill:#fff;text-anchor:middle;font-weight:600}\
.name{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}\
.dots{fill:none;stroke:#1e293b;stroke-linecap:round}.hit{fill:#fff;fill-opacity:0}\
.key:hover .hit{fill:#f1f5f9;fill-opacity:1}";

/// Draws a plan as a self-contained SVG with a background of its own.
///
/// A link is a band from its transmitter (wide) to its receiver (narrow, with a head). In a period that uses every link
/// once, its colour is its slot, from violet (first) to brown (last); in a sampled period, how often it is active.
/// Links in both directions bow to opposite sides. The area of a node shows its out-degree. In a browser, pointing at a
/// node or at a row of the legend highlights its links.
///
/// The order on the circle takes O(n m) per round; the rest is linear.
///
/// # Errors
///
/// `DrawError` for more than [`MAX_DRAWN_NODES`] nodes or [`MAX_DRAWN_LINKS`] links, and for places that are not one
/// finite point per node.
///
/// ```
/// use mingle_planner::{DesignOptions, Method, Topology, design, draw};
/// let plan = design(&Topology::generate("ring:n=5")?, Method::NguyenHe, &DesignOptions::default())?;
/// let svg = draw::svg(&plan, &draw::NodePlacement::Circle)?;
/// assert!(svg.starts_with("<svg ") && svg.contains("node-4"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn svg(plan: &Plan, layout: &NodePlacement<'_>) -> Result<String, DrawError> {
    let nodes = plan.node_count();
    layout.check(nodes)?;
    if nodes > MAX_DRAWN_NODES || plan.forecast().links > MAX_DRAWN_LINKS {
        return Err(DrawError::TooLarge { nodes, links: plan.forecast().links });
    }
    let union = Union::of(plan);
    if union.links.len() > MAX_DRAWN_LINKS {
        return Err(DrawError::TooLarge { nodes, links: union.links.len() });
    }
    Ok(PlanPicture::new(plan, layout, &union).draw())
}

/// The decisions made before drawing.
struct PlanPicture<'p> {
    plan: &'p Plan,
    union: &'p Union,
    placement: Placement,
    names: Names,
    small: Option<SmallMultiples<'p>>,
    /// Top left corner of the box of the nodes.
    corner: Point,
    /// Left side of the legend, and height of the part with nodes and legend.
    legend_x: f64,
    height: f64,
    /// Edges of the base graph without a link.
    unused: Vec<(usize, usize)>,
}

impl<'p> PlanPicture<'p> {
    fn new(plan: &'p Plan, layout: &NodePlacement<'_>, union: &'p Union) -> Self {
        let placement = Placement::new(layout, union, plan.node_count());
        let names = labels::place(plan.base().names(), &placement, union);
        let [left, right, top, bottom] = overhang(&names, &placement);
        let corner = [MARGIN + left, HEADER + top];
        let legend_x = corner[0] + placement.size[0] + right + COLUMN_GAP;
        let height = (top + placement.size[1] + bottom).max(legend::least_height(union));
        let small = SmallMultiples::new(plan, &placement, legend_x + legend::WIDTH - MARGIN);
        Self { plan, union, names, small, corner, legend_x, height, unused: unused_edges(plan, union), placement }
    }

    fn draw(&self) -> String {
        let width = self.legend_x + legend::WIDTH + MARGIN - 20.0;
        let small = self.small.as_ref().map_or(0.0, SmallMultiples::height);
        let height = HEADER + self.height + small + MARGIN;
        let mut document = SvgDocument::default();
        self.begin(&mut document, [width, height]);
        self.header(&mut document, width - 2.0 * MARGIN);
        self.background(&mut document);
        self.links(&mut document);
        self.nodes(&mut document);
        let legend_corner = [self.legend_x, HEADER + 4.0];
        let degrees = self.union.out_degrees(self.plan.node_count());
        let key = LegendKey {
            names: &self.names,
            radii: &self.placement.radii,
            degrees: &degrees,
            edges: !self.unused.is_empty(),
        };
        legend::draw(&mut document, self.union, &key, legend_corner, self.height);
        if let Some(small) = &self.small {
            small.draw(&mut document, [MARGIN, HEADER + self.height + 8.0], &self.placement, self.union);
        }
        document.put(format_args!("</svg>"));
        document.finish()
    }

    fn begin(&self, document: &mut SvgDocument, [width, height]: [f64; 2]) {
        let (width, height) = (Coordinate(width.ceil()), Coordinate(height.ceil()));
        document.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">"
        ));
        let title = escaped(self.plan.method());
        document.put(format_args!("<title>{title}: {}</title>", escaped(&caption(self.plan).join(", "))));
        document.put(format_args!("<style>{STYLE}{}</style>", self.pointing()));
        document.put(format_args!(
            "<rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>",
            Coordinate(width.0 - 1.0),
            Coordinate(height.0 - 1.0)
        ));
    }

    /// Rules that fade all other links while the pointer is on a colour or a node.
    fn pointing(&self) -> String {
        let mut rules = String::new();
        for class in 0..self.union.classes.len() {
            let _ = write!(rules, "svg:has(.k{class}:hover) .links path:not(.c{class}){{opacity:.05}}");
        }
        if self.plan.node_count() <= MOST_POINTED_NODES {
            for node in 0..self.plan.node_count() {
                let _ = write!(rules, "svg:has(.n{node}:hover) .links path:not(.f{node}):not(.t{node}){{opacity:.05}}");
            }
        }
        rules
    }

    fn header(&self, document: &mut SvgDocument, room: f64) {
        let most = (room / 11.5) as usize;
        document.text("title", [MARGIN, 36.0], Anchor::Start, &shortened(self.plan.method(), most));
        document.text("caption", [MARGIN, 57.0], Anchor::Start, &caption(self.plan).join("  ·  "));
    }

    fn background(&self, document: &mut SvgDocument) {
        if self.unused.is_empty() {
            return;
        }
        let mut d = String::new();
        for &(u, v) in &self.unused {
            let _ = write!(d, "M{}L{}", At(self.place(u)), At(self.place(v)));
        }
        let width = if self.unused.len() > 150 { 0.6 } else { 1.0 };
        document.put(format_args!("<path class=\"edge\" stroke-width=\"{}\" d=\"{d}\"/>", Coordinate(width)));
    }

    fn links(&self, document: &mut SvgDocument) {
        let look = Look::of(self.union.links.len());
        document.put(format_args!("<g class=\"links\" fill-opacity=\"{}\">", look.opacity));
        // Short links above long ones, which can be seen elsewhere.
        let mut order: Vec<&DrawnLink> = self.union.links.iter().collect();
        let length = |drawn: &DrawnLink| {
            let [dx, dy] = difference(self.place(drawn.link.from), self.place(drawn.link.to));
            dx.hypot(dy)
        };
        order.sort_by(|a, b| {
            Coordinate(length(b)).tenths().cmp(&Coordinate(length(a)).tenths()).then(a.link.cmp(&b.link))
        });
        for drawn in order {
            let Link { from, to } = drawn.link;
            let class = &self.union.classes[drawn.class];
            let ends = [from, to].map(|node| (self.place(node), self.placement.radii[node]));
            let control = self.control(drawn);
            document.put(format_args!(
                "<path class=\"c{} f{from} t{to}\" fill=\"{}\" d=\"{}\"/>",
                drawn.class,
                class.colour,
                outline(ends[0], ends[1], control, look.band)
            ));
        }
        document.put(format_args!("</g>"));
    }

    /// The control point of a link. Links in both directions bow to their right. On a circle links bend towards the
    /// centre, since those between near nodes would otherwise all lie on the rim.
    fn control(&self, drawn: &DrawnLink) -> Point {
        let [from, to] = [drawn.link.from, drawn.link.to].map(|node| self.place(node));
        let [x, y] = bowed(from, to, if drawn.two_way { BOW } else { 0.0 });
        if self.placement.angles.is_none() {
            return [x, y];
        }
        let inward = [0, 1].map(|axis| self.corner[axis] + 0.5 * self.placement.size[axis] - [x, y][axis]);
        let length = (to[0] - from[0]).hypot(to[1] - from[1]);
        let share = INWARD_BEND.min(MOST_BEND * length / inward[0].hypot(inward[1]).max(1.0));
        [x + share * inward[0], y + share * inward[1]]
    }

    fn nodes(&self, document: &mut SvgDocument) {
        let degrees = self.union.out_degrees(self.plan.node_count());
        for (node, (name, peer)) in self.plan.nodes().enumerate() {
            let ([x, y], radius) = (self.place(node), self.placement.radii[node]);
            document.put(format_args!("<g class=\"n{node}\">"));
            let bound = peer.map_or_else(String::new, |peer| format!(", {}", escaped(peer)));
            document.put(format_args!("<title>{}, {} receivers{bound}</title>", escaped(name), degrees[node]));
            document.put(format_args!(
                "<circle class=\"node\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>",
                Coordinate(x),
                Coordinate(y),
                Coordinate(radius)
            ));
            self.inscribe(document, node, degrees[node]);
            if let Names::Beside(labels) = &self.names
                && let Some(label) = labels.get(node)
            {
                self.name(document, label);
            }
            document.put(format_args!("</g>"));
        }
    }

    /// The name or the out-degree, in the node.
    fn inscribe(&self, document: &mut SvgDocument, node: usize, degree: usize) {
        let radius = self.placement.radii[node];
        let (text, font_size) = match &self.names {
            Names::Inside { texts, .. } => (escaped(&texts[node].text), texts[node].font_size),
            Names::Beside(_) if radius >= LEAST_NUMBERED => (degree.to_string(), (1.05 * radius).min(11.0)),
            Names::Beside(_) => return,
        };
        let [x, y] = self.place(node);
        document.put(format_args!(
            "<text class=\"inside\" font-size=\"{}\" x=\"{}\" y=\"{}\">{text}</text>",
            Coordinate(font_size),
            Coordinate(x),
            Coordinate(y + 0.36 * font_size)
        ));
    }

    fn name(&self, document: &mut SvgDocument, label: &NodeLabel) {
        let at = [label.at[0] + self.corner[0], label.at[1] + self.corner[1]];
        let turn = match label.turn {
            turn if turn.abs() < 0.05 => String::new(),
            turn => format!(" transform=\"rotate({} {})\"", Coordinate(turn % 360.0), At(at)),
        };
        document.put(format_args!(
            "<text class=\"name\" font-size=\"{}\" x=\"{}\" y=\"{}\"{}{turn}>{}</text>",
            Coordinate(label.font_size),
            Coordinate(at[0]),
            Coordinate(at[1]),
            label.anchor.attribute(),
            escaped(&label.text)
        ));
    }

    fn place(&self, node: usize) -> Point {
        let [x, y] = self.placement.places[node];
        [x + self.corner[0], y + self.corner[1]]
    }
}

/// The thickness and opacity of links, by their number.
struct Look {
    band: BandShape,
    opacity: f64,
}

impl Look {
    fn of(links: usize) -> Self {
        let (band, opacity) = match links {
            0..=60 => (BandShape { wide: 6.0, narrow: 1.6, head: 8.0 }, 0.92),
            61..=160 => (BandShape { wide: 5.0, narrow: 1.2, head: 7.0 }, 0.9),
            161..=400 => (BandShape { wide: 3.2, narrow: 0.7, head: 5.0 }, 0.8),
            401..=1_500 => (BandShape { wide: 2.2, narrow: 0.35, head: 3.2 }, 0.6),
            _ => (BandShape { wide: 1.2, narrow: 0.2, head: 0.0 }, 0.4),
        };
        Self { band, opacity }
    }
}

/// Distances by which names and nodes extend beyond the box: left, right, top, bottom.
fn overhang(names: &Names, placement: &Placement) -> [f64; 4] {
    let largest = placement.radii.iter().copied().fold(0.0, f64::max);
    let mut out = [largest + 2.0; 4];
    let labels: &[NodeLabel] = match names {
        Names::Inside { .. } => &[],
        Names::Beside(labels) => labels,
    };
    for label in labels {
        let width = text_width(&label.text, label.font_size);
        let (sin, cos) = label.turn.to_radians().sin_cos();
        let (start, end) = match label.anchor {
            Anchor::Start => (0.0, width),
            Anchor::Middle => (-0.5 * width, 0.5 * width),
            Anchor::End => (-width, 0.0),
        };
        for along in [start, end] {
            let (x, y) = (label.at[0] + along * cos, label.at[1] + along * sin);
            let sides = [-x, x - placement.size[0], label.font_size - y, y - placement.size[1] + 4.0];
            out = [0, 1, 2, 3].map(|side| out[side].max(sides[side] + 4.0));
        }
    }
    out
}

fn unused_edges(plan: &Plan, union: &Union) -> Vec<(usize, usize)> {
    let mut used: Vec<(usize, usize)> = union.edges().iter().map(|&(u, v)| (u.min(v), u.max(v))).collect();
    used.sort_unstable();
    let all = plan.base().edges().iter();
    let unused: Vec<(usize, usize)> = all.filter(|edge| used.binary_search(edge).is_err()).copied().collect();
    if unused.len() > MOST_BACKGROUND_EDGES { Vec::new() } else { unused }
}

/// The costs of the plan, in a few words each.
fn caption(plan: &Plan) -> Vec<String> {
    let forecast = plan.forecast();
    let steps = plan.steps().len();
    let mut words = vec![format!("{} nodes", plan.node_count()), format!("{} links", forecast.links)];
    match plan.medium() {
        Medium::Broadcast => words.push(format!("{} slots", forecast.slots_per_period)),
        Medium::PointToPoint => words.push("point to point".to_owned()),
    }
    words.push(if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") });
    match (forecast.lambda_2, forecast.slots_per_neper) {
        (Some(0.0), _) => words.push("averages exactly in one period".to_owned()),
        (_, Some(slots)) => words.push(format!("{slots:.1} slots per neper")),
        (Some(modulus), None) => words.push(format!("|λ₂| {modulus:.3}")),
        (None, None) => {}
    }
    words
}
