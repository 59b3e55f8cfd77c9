import { render } from "preact";
import { App } from "./app";
import { load } from "./load";
import "./app.css";

const root = document.getElementById("app")!;

load("start").then(
  (start) => {
    root.replaceChildren();
    render(<App start={start} />, root);
  },
  (error: Error) => (root.textContent = error.message),
);
