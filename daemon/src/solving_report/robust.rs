//! Report of a robust model, as text.

use mingle_solving::{Answer, Coefficient, Problem};

use crate::out;

/// Prints the model, and its losses at each site.
pub(super) fn print(problem: &Problem, answer: &Answer) {
    let Answer::Robust { coefficients, intercept, labels, sites, warnings, .. } = answer else { return };
    out::line(Coefficient::HEAD);
    coefficients.iter().map(Coefficient::line).for_each(out::line);
    out::line(format!("{:<28} {intercept:>16.9}", "(intercept)"));
    if let Some([negative, positive]) = labels {
        out::line(format!("a sum above 0 says {positive}, below 0 says {negative}"));
    }
    out::line("");
    let head = ["samples", "radius", "loss", "worst loss", "worst weight"];
    out::line(format!("{:<20} {:>8} {:>8} {:>12} {:>12} {:>12}", "site", head[0], head[1], head[2], head[3], head[4]));
    for site in sites {
        let name = problem.names.get(site.site).map_or("", String::as_str);
        let (samples, radius, loss) = (site.samples, site.radius, site.loss);
        let worst = site.worst_loss;
        let weight = site.weight;
        out::line(format!("{name:<20} {samples:>8} {radius:>8} {loss:>12.6} {worst:>12.6} {weight:>12.4}"));
    }
    for warning in warnings {
        out::line(format!("warning: {warning}"));
    }
}
