//! Queries for annotations, and the ports of annotations. Reads nothing itself.

use domain::{Annotated, Annotation, AnnotationId, TimeRange};

use crate::ports_macro::ports;
use crate::{Page, StoreResult};

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

ports! {
    /// The annotations of a range.
    ReadAnnotations [(Query, Annotations)] {
        /// A page of annotations, sorted by time, as they are this moment.
        fn annotations(query: &AnnotationQuery) -> StoreResult<Page<Annotation>>;
    }

    /// A person's edits of annotations. A repeat changes nothing.
    EditAnnotations [(UpdateItem, Annotations), (DeleteItem, Annotations)] {
        /// Stores an annotation. It replaces a stored one with the same id.
        fn put_annotation(annotation: &Annotation) -> StoreResult<()>;

        /// Deletes an annotation; returns whether there was one.
        fn delete_annotation(id: &AnnotationId) -> StoreResult<bool>;
    }
}
