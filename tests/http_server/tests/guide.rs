//! The guide's chapter shows the server as it is.

const CHAPTER: &str = include_str!("../../../src/guide/http_servers.md");
const SERVER: &str = include_str!("../../../examples/http_server/server.rs");

#[test]
fn the_excerpt_in_the_guide_consists_of_lines_of_the_server_in_their_order() {
    // The first block of code is that of the companion crate.
    let mut blocks = CHAPTER.split("```").filter_map(|block| block.strip_prefix("rust,ignore\n"));
    let excerpt = blocks.nth(1);
    let shown =
        excerpt.expect("a block of code").lines().filter(|line| !line.starts_with("// ..."));
    let mut lines = SERVER.lines().map(str::trim);
    let mut count = 0;
    for line in shown {
        assert!(
            lines.any(|other| other == line.trim()),
            "not in the server, or not in order: {line}"
        );
        count += 1;
    }
    assert!(count > 10, "the block is shorter than the server's core");
}

#[test]
fn the_server_fits_a_page() {
    assert!(SERVER.lines().count() <= 80);
}
