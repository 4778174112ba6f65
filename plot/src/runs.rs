//! Runs of points that are drawn for a series: broken at gaps, and no denser than pixels.

/// Splits at gaps. Of each run of points in one pixel column it keeps the first, lowest, highest and last, in the order
/// they came: the drawn line is the same.
pub(super) fn runs(points: impl Iterator<Item = Option<(f64, f64)>>) -> Vec<Vec<(f64, f64)>> {
    let mut runs: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut run = Vec::new();
    let mut column: Vec<(f64, f64)> = Vec::new();
    for point in points {
        if let Some(point) = point
            && column.last().is_some_and(|last| last.0.floor() == point.0.floor())
        {
            column.push(point);
            continue;
        }
        run.extend(visible(&column));
        column.clear();
        match point {
            Some(point) => column.push(point),
            None => runs.push(std::mem::take(&mut run)),
        }
    }
    run.extend(visible(&column));
    runs.push(run);
    runs.retain(|run| !run.is_empty());
    runs
}

fn visible(column: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if column.len() <= 4 {
        return column.to_vec();
    }
    let by_height = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
    let mut kept = vec![0, column.len() - 1];
    kept.extend((0..column.len()).min_by(by_height));
    kept.extend((0..column.len()).max_by(by_height));
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|index| column[index]).collect()
}
