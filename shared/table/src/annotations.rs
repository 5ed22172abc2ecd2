//! Queries for annotations. Reads nothing itself.

use domain::{Annotated, Annotation, AnnotationId, TimeRange};

/// A query for the annotations that overlap a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationQuery {
    /// The range in time.
    pub range: TimeRange,
    /// The device, room or home that the annotations are about; `None`: any.
    pub about: Option<Annotated>,
    /// The last annotation of the previous page; `None` for the first page.
    pub after: Option<AnnotationId>,
    /// The largest number of annotations.
    pub limit: usize,
}

impl AnnotationQuery {
    /// Whether an annotation matches the query.
    pub fn wants(&self, annotation: &Annotation) -> bool {
        let is_about = self.about.as_ref().is_none_or(|about| *about == annotation.about);
        is_about && annotation.overlaps(self.range)
    }
}
