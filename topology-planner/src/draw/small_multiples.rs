//! The first steps of a longer period, one small picture each.

use mingle_plot::document::{Anchor, At, Coordinate, Point, SvgDocument};

use super::{
    layout::Placement,
    palette,
    shape::{BandShape, bowed, outline},
    union::Union,
};
use crate::plan::{Medium, MixingStep, Plan};

/// The most steps that are shown.
const MOST_STEPS: usize = 12;

/// The most links in all small pictures together.
const MOST_LINKS: usize = 6_000;

const COLUMNS: usize = 4;
const GAP: f64 = 18.0;
const HEADING: f64 = 40.0;
const CAPTION: f64 = 20.0;

/// The small pictures of a plan.
pub(super) struct SmallMultiples<'p> {
    plan: &'p Plan,
    shown: usize,
    /// Width and height of one picture.
    cell: [f64; 2],
}

impl<'p> SmallMultiples<'p> {
    /// The small pictures, or `None` for a period of one step.
    pub(super) fn new(plan: &'p Plan, placement: &Placement, width: f64) -> Option<Self> {
        let steps = plan.steps();
        if steps.len() < 2 {
            return None;
        }
        let mut links = 0;
        let affordable = steps.iter().take(MOST_STEPS).take_while(|step| {
            links += step.links().len();
            links <= MOST_LINKS
        });
        let shown = affordable.count();
        let side = (width - GAP * (COLUMNS - 1) as f64) / COLUMNS as f64;
        let cell = [side, side * placement.size[1] / placement.size[0].max(1.0)];
        (shown > 0).then_some(Self { plan, shown, cell })
    }

    pub(super) fn height(&self) -> f64 {
        HEADING + self.shown.div_ceil(COLUMNS) as f64 * (self.cell[1] + CAPTION + GAP)
    }

    /// Draws the small pictures from `corner` to the right and down. Links have the colours of the large picture if
    /// these show the order of events; otherwise the slots of each step have colours of their own.
    pub(super) fn draw(&self, document: &mut SvgDocument, [x, y]: Point, placement: &Placement, union: &Union) {
        let steps = self.plan.steps();
        let heading = match steps.len() - self.shown {
            0 => "Step by step".to_owned(),
            _ => format!("The first {} of {} steps", self.shown, steps.len()),
        };
        document.text("heading", [x, y + 14.0], Anchor::Start, &heading);
        for (number, step) in steps.iter().take(self.shown).enumerate() {
            let left = x + (number % COLUMNS) as f64 * (self.cell[0] + GAP);
            let top = y + HEADING + (number / COLUMNS) as f64 * (self.cell[1] + CAPTION + GAP);
            document.text("small", [left, top], Anchor::Start, &self.caption(number, step));
            let scale = (self.cell[0] - 12.0) / placement.size[0].max(1.0);
            let place = |node: usize| {
                let [x, y] = placement.places[node];
                [left + 6.0 + scale * x, top + CAPTION - 6.0 + scale * y]
            };
            document.put(format_args!("<g class=\"step\">"));
            let colour = |slot: usize| match union.colour(number, slot) {
                Some(colour) => colour.to_owned(),
                None => palette::colour(slot, step.slots().len()),
            };
            draw_step(document, step, &place, &colour);
            document.put(format_args!("</g>"));
        }
    }

    fn caption(&self, number: usize, step: &MixingStep) -> String {
        let links = step.links().len();
        let of_links = if links == 1 { "1 link".to_owned() } else { format!("{links} links") };
        match (self.plan.medium(), step.slots().len()) {
            (Medium::PointToPoint, _) => format!("step {number}: {of_links}"),
            (Medium::Broadcast, 1) => format!("step {number}: {of_links}, 1 slot"),
            (Medium::Broadcast, slots) => format!("step {number}: {of_links}, {slots} slots"),
        }
    }
}

fn draw_step(
    document: &mut SvgDocument,
    step: &MixingStep,
    place: &dyn Fn(usize) -> Point,
    colour: &dyn Fn(usize) -> String,
) {
    let mut slot_of = vec![0; step.links().len()];
    for (slot, links) in step.slots().iter().enumerate() {
        links.iter().filter_map(|&link| step.position(link)).for_each(|position| slot_of[position] = slot);
    }
    let wide = match step.links().len() {
        0..=80 => 2.6,
        81..=200 => 1.6,
        _ => 1.0,
    };
    for (link, slot) in step.links().iter().zip(slot_of) {
        let link = link.link();
        let colour = colour(slot);
        let bow = if step.position(link.reversed()).is_some() { 0.05 } else { 0.0 };
        let band = BandShape { wide, narrow: 0.5, head: 2.0 * wide };
        let (from, to) = (place(link.from), place(link.to));
        let outline = outline((from, 0.0), (to, 1.6), bowed(from, to, bow), band);
        document.put(format_args!("<path fill=\"{colour}\" d=\"{outline}\"/>"));
    }
    let mut dots = String::new();
    for node in 0..step.node_count() {
        dots.push_str(&format!("M{}h0", At(place(node))));
    }
    let size = if step.node_count() > 100 { 1.6 } else { 3.0 };
    document.put(format_args!("<path class=\"dots\" stroke-width=\"{}\" d=\"{dots}\"/>", Coordinate(size)));
}
