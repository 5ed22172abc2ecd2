//! What is asked of annotations, and their ports. Reads nothing itself.

use domain::{Annotated, Annotation, AnnotationId, TimeRange};

use crate::ports_macro::ports;
use crate::{Page, StoreResult};

/// What is asked of annotations: those that overlap a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationQuery {
    /// The range.
    pub range: TimeRange,
    /// What they are about, if that matters.
    pub about: Option<Annotated>,
    /// The annotation after which the page begins.
    pub after: Option<AnnotationId>,
    /// The largest number of annotations.
    pub limit: usize,
}

impl AnnotationQuery {
    /// Whether an annotation is one of them.
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

    /// A person's edits of annotations. Done twice, they leave what the first time left.
    EditAnnotations [(UpdateItem, Annotations), (DeleteItem, Annotations)] {
        /// Keeps an annotation; it replaces the one of the same id.
        fn put_annotation(annotation: &Annotation) -> StoreResult<()>;

        /// Deletes an annotation; returns whether there was one.
        fn delete_annotation(id: &AnnotationId) -> StoreResult<bool>;
    }
}
