//! Ports as rows of a table: each is declared once, with its permissions and its one implementation. Holds no row.

/// Declares ports: for each the trait, what it must be permitted, and that every [`Db`](crate::db::Db) has it. What a
/// function does is the method of the same name of [`Session`](crate::Session).
///
/// Code over a port cannot call another port or an operation of `Db`, because `Db` is no supertrait of a port.
#[macro_export]
macro_rules! ports {
    ($(
        $(#[$about:meta])*
        $port:ident [$(($action:ident, $target:ident)),+ $(,)?] {
            $(
                $(#[$about_function:meta])*
                fn $function:ident($($argument:ident: $type:ty),* $(,)?) -> $output:ty;
            )+
        }
    )+) => { $(
        $(#[$about])*
        pub trait $port: Send + Sync {
            /// What the port must be permitted.
            const PERMISSIONS: &'static [$crate::Permission] =
                &[$(($crate::Action::$action, $crate::Target::$target)),+];

            $(
                $(#[$about_function])*
                fn $function(
                    &self,
                    $($argument: $type,)*
                    invocation: &$crate::Invocation,
                ) -> impl ::std::future::Future<Output = $output> + Send;
            )+
        }

        impl<D: $crate::db::Db> $port for D {
            $(
                async fn $function(
                    &self,
                    $($argument: $type,)*
                    invocation: &$crate::Invocation,
                ) -> $output {
                    $crate::Session::new(self, invocation).$function($($argument),*).await
                }
            )+
        }
    )+ };
}
