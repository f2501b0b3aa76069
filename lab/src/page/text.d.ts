// Files that the bundler includes as text.

declare module "*.csv" {
  const text: string;
  export default text;
}

declare module "*.md" {
  const text: string;
  export default text;
}

declare module "*.toml" {
  const text: string;
  export default text;
}

declare module "*.css";
