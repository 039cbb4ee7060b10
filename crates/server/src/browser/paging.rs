//! Pages of products: their numbers, and the links between them.

use super::amounts::grouped;
use super::query::Query;

/// Number of products on a page.
pub(super) const PAGE: usize = 100;

/// Links between pages.
#[derive(Debug)]
pub(super) struct Pager {
    /// Number of this page, and of the last one.
    pub(super) number: usize,
    pub(super) last: usize,
    pub(super) previous: Option<String>,
    pub(super) next: Option<String>,
    /// Numbers with their links; none is a gap.
    pub(super) links: Vec<Option<PageLink>>,
}

/// Link to a page.
#[derive(Debug)]
pub(super) struct PageLink {
    pub(super) label: String,
    pub(super) address: String,
    pub(super) is_current: bool,
}

impl Pager {
    /// Returns the links of the page of this number, of so many products.
    pub(super) fn of(query: &Query, number: usize, products: usize) -> Self {
        let last = products.div_ceil(PAGE).max(1);
        let link = |number: usize| query.at(number).address();
        // The first and the last page, this one, and one on either side.
        let mut shown = vec![
            1,
            number.saturating_sub(1),
            number,
            number.saturating_add(1),
            last,
        ];
        shown.retain(|shown| (1..=last).contains(shown));
        shown.sort_unstable();
        shown.dedup();
        let mut links = Vec::new();
        let mut before = 0;
        for page in shown {
            if page > before + 1 {
                links.push(None);
            }
            before = page;
            links.push(Some(PageLink {
                label: grouped(&page.to_string()),
                address: link(page),
                is_current: page == number,
            }));
        }
        Self {
            number,
            last,
            previous: (number > 1).then(|| link((number - 1).min(last))),
            next: (number < last).then(|| link(number + 1)),
            links,
        }
    }

    /// Returns true if there is only this page.
    pub(super) fn is_single(&self) -> bool {
        self.last == 1 && self.number == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pager_links_neighbours_and_both_ends() {
        let shown = |number: usize, products: usize| {
            let pager = Pager::of(&Query::default(), number, products);
            let links = pager.links.iter().map(|link| match link {
                None => "…".to_owned(),
                Some(link) if link.is_current => format!("[{}]", link.label),
                Some(link) => link.label.clone(),
            });
            (links.collect::<Vec<_>>().join(" "), pager)
        };
        assert!(shown(1, 100).1.is_single() && shown(1, 0).1.is_single());
        assert_eq!(shown(1, 101).0, "[1] 2");
        assert_eq!(shown(5, 100_000).0, "1 … 4 [5] 6 … 1,000");
        let (_, beyond) = shown(9, 150);
        assert_eq!(beyond.previous.as_deref(), Some("/catalog?page=2"));
        assert!(beyond.next.is_none() && !beyond.is_single());
        assert_eq!(shown(2, 150).1.previous.as_deref(), Some("/catalog"));
    }
}
