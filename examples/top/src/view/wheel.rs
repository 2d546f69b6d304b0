//! The wheel as a strip of buckets. It stands still, and the hand moves along it: behind the hand, the
//! buckets fill for the next turn.

use super::{grouped, panel};
use crate::history::Screen;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Sparkline, SparklineBar};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let sums = columns(&screen.buckets, area.width.saturating_sub(2));
    let most = sums.iter().copied().max().unwrap_or(0);
    let (pending, slots) = (grouped(screen.pending), grouped(screen.slots));
    let scale = Line::from(format!(" highest: {} ", grouped(most)).fg(Color::Reset))
        .alignment(Alignment::Right);
    let block = panel(format!("the wheel: {pending} timeouts pending, in {slots} slots"));
    let block = block.title(scale);
    let inner = block.inner(area);
    frame.render_widget(block, area);

    let width = sums.len() as u16;
    let left = inner.width.saturating_sub(width) / 2;
    let strip = Rect { x: inner.x + left, width: width.min(inner.width), ..inner };
    let [bars, below] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(strip);
    let hand = screen.hand * sums.len() / screen.buckets.len().max(1);
    let colour = |column| if column == hand { Color::Yellow } else { Color::Cyan };
    let data: Vec<SparklineBar> = sums
        .into_iter()
        .enumerate()
        .map(|(column, sum)| SparklineBar::from(sum).style(Some(colour(column).into())))
        .collect();
    frame.render_widget(Sparkline::default().data(data).max(most.max(1)), bars);
    frame.render_widget(Paragraph::new(pointer(hand, width)).fg(Color::Yellow), below);
}

/// The sums of as many neighbouring buckets as fit into a column: a power of two.
fn columns(buckets: &[u32], width: u16) -> Vec<u64> {
    let columns = (1 << u32::from(width.max(1)).ilog2()).min(buckets.len().max(1));
    let chunks = buckets.chunks((buckets.len() / columns).max(1));
    chunks.map(|chunk| chunk.iter().copied().map(u64::from).sum()).collect()
}

/// The line with the hand.
fn pointer(hand: usize, width: u16) -> String {
    let now = " now";
    if hand + now.len() < usize::from(width) {
        format!("{}▲{now}", " ".repeat(hand))
    } else {
        format!("{}now ▲", " ".repeat(hand.saturating_sub(now.len())))
    }
}
