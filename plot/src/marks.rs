//! Layout of the labels of marks: in rows above the first panel, so that no label covers another and no line crosses
//! one.

use super::Mark;
use super::svg::text_width;

/// Distance between a line and its label, and after the label.
const MARGIN: f64 = 5.0;

/// A mark, and the row of its label. Its line runs down from that row.
#[derive(Debug)]
pub(super) struct PlacedMark<'a> {
    pub(super) mark: &'a Mark,
    pub(super) x: f64,
    /// The row, counted from the panel upwards.
    pub(super) row: usize,
    /// `true` if the label stands to the left of its line, because there is no room to the right.
    pub(super) left: bool,
    width: f64,
}

/// Gives each mark the lowest row that suits those placed before it.
///
/// Labels that point right are placed from right to left, those that point left the other way round. So a label that
/// has to move up begins beyond the lines of those that it moved above. Where marks are so crowded that no row suits, a
/// label takes the next free row and lines cross the labels below.
pub(super) fn place<'a>(
    marks: impl Iterator<Item = (f64, &'a Mark)>,
    font_size: f64,
    right_edge: f64,
) -> Vec<PlacedMark<'a>> {
    let unplaced = |(x, mark): (f64, &'a Mark)| {
        let width = text_width(&mark.label, font_size) + 2.0 * MARGIN;
        let left = x + width > right_edge;
        PlacedMark { mark, x, row: 0, left, width }
    };
    let (mut left, mut right): (Vec<_>, Vec<_>) = marks.map(unplaced).partition(|mark| mark.left);
    left.sort_by(|a, b| a.x.total_cmp(&b.x));
    right.sort_by(|a, b| b.x.total_cmp(&a.x));

    let mut placed: Vec<PlacedMark<'a>> = Vec::new();
    for mut mark in left.into_iter().chain(right) {
        let free = placed.iter().map(|other| other.row + 1).max().unwrap_or(0);
        let suits = |row: &usize| placed.iter().all(|other| mark.is_clear_of(other, *row));
        mark.row = (0..free).find(suits).unwrap_or(free);
        placed.push(mark);
    }
    placed
}

impl PlacedMark<'_> {
    /// The left and right ends of the label.
    fn extent(&self) -> (f64, f64) {
        if self.left { (self.x - self.width, self.x) } else { (self.x, self.x + self.width) }
    }

    /// Returns `true` if this mark can have its label in `row`: neither label covers the other or is crossed by its
    /// line.
    fn is_clear_of(&self, other: &Self, row: usize) -> bool {
        let (begin, end) = self.extent();
        let (other_begin, other_end) = other.extent();
        let labels_apart = row != other.row || end <= other_begin || other_end <= begin;
        let not_crossed = other.row < row || other.x <= begin || other.x >= end;
        let crosses_not = row < other.row || self.x <= other_begin || self.x >= other_end;
        labels_apart && not_crossed && crosses_not
    }
}
