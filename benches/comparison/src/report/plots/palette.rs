//! Colors: ours stands out, and every rival keeps its own in all plots.

use super::super::results::OURS;
use crate::rivals;
use plotters::style::RGBColor;

const OUR_COLOR: RGBColor = RGBColor(0x0b, 0x5f, 0xd8);
const OUR_SHADES: [RGBColor; 4] =
    [OUR_COLOR, RGBColor(0x4f, 0x91, 0xec), RGBColor(0x8b, 0xb9, 0xf5), RGBColor(0xbf, 0xd9, 0xfb)];
const RIVAL_SHADES: [RGBColor; 4] = [
    RGBColor(0x59, 0x63, 0x6e),
    RGBColor(0x84, 0x8e, 0x99),
    RGBColor(0xae, 0xb6, 0xbf),
    RGBColor(0xd3, 0xd9, 0xdf),
];

/// Ours has its color, and the others of these never have a line.
const WITHOUT: [&str; 3] = [OURS, rivals::CANCEL_NEW, rivals::FLOOR];

const HUES: [RGBColor; 16] = [
    RGBColor(0xd1, 0x24, 0x2f),
    RGBColor(0x1a, 0x7f, 0x37),
    RGBColor(0xe1, 0x6f, 0x24),
    RGBColor(0x82, 0x50, 0xdf),
    RGBColor(0x8c, 0x56, 0x4b),
    RGBColor(0xd6, 0x3e, 0x9d),
    RGBColor(0x0f, 0x9d, 0xa8),
    RGBColor(0x9a, 0x8a, 0x00),
    RGBColor(0x59, 0x63, 0x6e),
    RGBColor(0x5a, 0xb0, 0x3c),
    RGBColor(0x2b, 0x3a, 0x67),
    RGBColor(0xb0, 0x7a, 0xa1),
    RGBColor(0x00, 0x4d, 0x40),
    RGBColor(0xf2, 0x8e, 0x8a),
    RGBColor(0x6b, 0x70, 0x1f),
    RGBColor(0x4e, 0x9f, 0xd1),
];

/// Of the first, second and further bars of a rival.
pub fn shade(rival: &str, place: usize) -> RGBColor {
    let shades = if rival == OURS { OUR_SHADES } else { RIVAL_SHADES };
    shades[place.min(shades.len() - 1)]
}

/// The shades without a rival, for a legend.
pub fn rival_shade(place: usize) -> RGBColor {
    RIVAL_SHADES[place.min(RIVAL_SHADES.len() - 1)]
}

/// Of a line.
pub fn hue(rival: &str) -> RGBColor {
    if rival == OURS {
        return OUR_COLOR;
    }
    let mut others = rivals::all().map(|facts| facts.name).filter(|name| !WITHOUT.contains(name));
    HUES[others.position(|name| name == rival).unwrap_or(0) % HUES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use plotters::style::Color;
    use std::collections::HashSet;

    #[test]
    fn no_two_rivals_share_a_color() {
        let names = rivals::all()
            .map(|facts| facts.name)
            .filter(|name| *name == OURS || !WITHOUT.contains(name));
        let hues: Vec<_> = names.map(|name| hue(name).rgb()).collect();
        assert_eq!(hues.iter().collect::<HashSet<_>>().len(), hues.len());
    }
}
