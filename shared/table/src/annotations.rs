//! Queries for annotations, and the ports of annotations. Reads nothing itself.

use domain::{Annotated, Annotation, AnnotationId, TimeRange};

use crate::ports_macro::ports;
use crate::{Page, StoreResult};

/// A query for the annotations that overlap a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationQuery {
    /// The range.
    pub range: TimeRange,
    /// The subject of the annotations; `None`: any.
    pub about: Option<Annotated>,
    /// The annotation after which the page begins.
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

ports! {
    /// The annotations of a range.
    ReadAnnotations [(Query, Annotations)] {
        /// A page of annotations in the order of time, as they are this moment.
        fn annotations(query: &AnnotationQuery) -> StoreResult<Page<Annotation>>;
    }

    /// A person's edits of annotations. Done twice, the result is the same.
    EditAnnotations [(UpdateItem, Annotations), (DeleteItem, Annotations)] {
        /// Stores an annotation; a stored one with the same id is replaced.
        fn put_annotation(annotation: &Annotation) -> StoreResult<()>;

        /// Deletes an annotation; returns whether there was one.
        fn delete_annotation(id: &AnnotationId) -> StoreResult<bool>;
    }
}
