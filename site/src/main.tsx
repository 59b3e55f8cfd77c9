import { render } from "preact";
import { App } from "./app";
import { Dataset } from "./dataset";
import { load } from "./load";
import "./app.css";

const root = document.getElementById("app")!;

load("results").then(
  (data) => {
    root.replaceChildren();
    render(<App data={new Dataset(data)} />, root);
  },
  (error: Error) => (root.textContent = error.message),
);
